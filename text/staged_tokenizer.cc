#include "text/staged_tokenizer.h"

#include <fmt/format.h>

#include <cassert>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {

StagedTokenizer::StagedTokenizer(std::unique_ptr<TokenModel> model, const TokenList& tokens,
                                 Normalizer normalizer, PreTokenizer pre_tokenizer)
    : model_(std::move(model)),
      normalizer_(std::move(normalizer)),
      pre_tokenizer_(std::move(pre_tokenizer)) {
  for (const auto& [piece, id] : tokens) {
    vocabulary_.Set(id, piece);
  }
}

Result<std::unique_ptr<StagedTokenizer>> StagedTokenizer::Create(
    std::unique_ptr<TokenModel> model, const TokenList& tokens, Normalizer normalizer,
    PreTokenizer pre_tokenizer, const std::vector<AddedToken>& added, Result<Decoder> decoder) {
  std::unique_ptr<StagedTokenizer> tokenizer(new StagedTokenizer(
      std::move(model), tokens, std::move(normalizer), std::move(pre_tokenizer)));
  tokenizer->decoder_ = std::move(decoder);
  ASSIGN_OR_RETURN(const std::vector<AddedToken> settled, tokenizer->SettleIds(added));
  RETURN_IF_ERROR(tokenizer->AddTokens(settled));
  return tokenizer;
}

Result<std::vector<AddedToken>> StagedTokenizer::SettleIds(
    const std::vector<AddedToken>& added) const {
  std::map<std::string_view, AddedToken> by_content;
  // Ids may coincide where the vocabulary leaves some out; then the reference finds the last one.
  std::unordered_map<int32_t, std::string_view> content_by_id;
  auto next_id = static_cast<int32_t>(model_->num_tokens());
  size_t num_moved = 0;  // have another id than the file says
  std::string moved_example;
  for (const AddedToken& stated : added) {
    if (stated.content.empty()) {
      continue;
    }
    AddedToken token = stated;
    if (const auto earlier = by_content.find(stated.content); earlier != by_content.end()) {
      token.id = earlier->second.id;
      token.special |= earlier->second.special;  // once special, always special
    } else {
      const int32_t own_id = model_->Id(stated.content);
      token.id = own_id >= 0 ? own_id : next_id++;
    }
    if (token.id >= Vocabulary::kMaxTokens) {
      return InvalidArgument(fmt::format("too many added tokens: the last id would be {}, limit {}",
                                         token.id, Vocabulary::kMaxTokens - 1),
                             "added_tokens");
    }
    if (stated.id != AddedToken::kNoId && token.id != stated.id && num_moved++ == 0) {
      moved_example = fmt::format("\"{}\" {}, not {}", stated.content, token.id, stated.id);
    }
    content_by_id.insert_or_assign(token.id, stated.content);
    by_content.insert_or_assign(stated.content, std::move(token));
  }
  if (num_moved > 0) {
    LogWarning("added tokens have other ids than the tokenizer file says: {}, the first {}",
               num_moved, moved_example);
  }
  std::vector<AddedToken> settled;
  settled.reserve(by_content.size());
  for (auto& [content, token] : by_content) {
    if (content_by_id.at(token.id) == content) {
      settled.push_back(std::move(token));
    }
  }
  return settled;
}

Status StagedTokenizer::AddTokens(const std::vector<AddedToken>& settled) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::vector<std::string> raw_patterns;
  std::vector<std::string> normalized_patterns;
  EncodeScratch scratch;
  for (const AddedToken& token : settled) {
    vocabulary_.Set(token.id, token.content);
    if (token.special) {
      special_content_.insert(token.content);
    }
    if (!token.normalized) {
      raw.push_back(token);
      raw_patterns.push_back(token.content);
      continue;
    }
    const std::string_view pattern = normalizer_.Normalize(token.content, scratch);
    if (!scratch.status.ok()) {
      return InvalidArgument(fmt::format("an added token cannot be normalized: id {}: {}", token.id,
                                         scratch.status.message()),
                             "added_tokens");
    }
    if (pattern.empty()) {
      return Unimplemented(
          fmt::format("an added token that normalizes to nothing is not served: id {}", token.id),
          "added_tokens");
    }
    if (pattern != token.content) {
      normalized_content_.insert_or_assign(token.id, std::string(pattern));
    }
    normalized.push_back(token);
    normalized_patterns.emplace_back(pattern);
  }
  raw_added_ = AddedTokenMatcher::Build(std::move(raw), raw_patterns);
  normalized_added_ = AddedTokenMatcher::Build(std::move(normalized), normalized_patterns);
  return {};
}

Status StagedTokenizer::Encode(std::string_view text, const EncodeOptions& options,
                               EncodeScratch& scratch, std::vector<int32_t>& ids) const {
  assert(!unicode::FindInvalidUtf8(text).has_value());
  scratch.status = {};
  const auto take_token = [&ids](int32_t id, std::string_view /*match*/) { ids.push_back(id); };
  const auto encode_normalized = [&](std::string_view normalized) {
    for (const std::string_view piece : pre_tokenizer_.Split(normalized, scratch)) {
      model_->Encode(piece, scratch, ids, nullptr);
    }
  };
  const bool asks_for_beginning = pre_tokenizer_.asks_for_beginning();
  raw_added_.Split(
      text, options.parse_special,
      [&](std::string_view raw) {
        if (asks_for_beginning && raw.data() == text.data()) {
          EncodeBeginning(raw, options, scratch, ids);
          return;
        }
        normalized_added_.Split(normalizer_.Normalize(raw, scratch), options.parse_special,
                                encode_normalized, take_token);
      },
      take_token);
  return scratch.status;
}

/// Encodes a section that begins with the first byte of the text, for a pre-tokenizer that needs to
/// know what comes from there.
void StagedTokenizer::EncodeBeginning(std::string_view raw, const EncodeOptions& options,
                                      EncodeScratch& scratch, std::vector<int32_t>& ids) const {
  const std::string_view normalized = normalizer_.NormalizeWithOrigins(raw, 0, scratch);
  normalized_added_.Split(
      normalized, options.parse_special,
      [&](std::string_view part) {
        const PreTokenizer::Origins all = {
            part, std::span<const ByteSpan>(scratch.origins)
                      .subspan(static_cast<size_t>(part.data() - normalized.data()), part.size())};
        for (const std::string_view piece : pre_tokenizer_.SplitWithOrigins(all, scratch)) {
          model_->Encode(piece, scratch, ids, nullptr);
        }
      },
      [&ids](int32_t id, std::string_view /*match*/) { ids.push_back(id); });
}

Status StagedTokenizer::EncodeWithSpans(std::string_view text, const EncodeOptions& options,
                                        EncodeScratch& scratch, std::vector<int32_t>& ids,
                                        TokenSpans& spans) const {
  assert(!unicode::FindInvalidUtf8(text).has_value());
  scratch.status = {};
  spans.clear();
  const auto take_token = [&](int32_t id, std::string_view match, ByteSpan span) {
    spans.added.push_back({spans.spans.size(), CountSpacesAround(match)});
    spans.spans.push_back(span);
    ids.push_back(id);
  };
  const auto position = [](std::string_view part, std::string_view whole) {
    return static_cast<size_t>(part.data() - whole.data());
  };
  const auto encode_raw = [&](std::string_view raw) {
    const std::string_view normalized =
        normalizer_.NormalizeWithOrigins(raw, position(raw, text), scratch);
    const auto origins = [&](std::string_view part) {
      return std::span<const ByteSpan>(scratch.origins)
          .subspan(position(part, normalized), part.size());
    };
    normalized_added_.Split(
        normalized, options.parse_special,
        [&](std::string_view part) {
          const PreTokenizer::Origins all = {part, origins(part)};
          for (const std::string_view piece : pre_tokenizer_.SplitWithOrigins(all, scratch)) {
            EncodePiece(piece, PreTokenizer::OriginsOfPiece(piece, all, scratch), scratch, ids,
                        spans);
          }
        },
        [&](int32_t id, std::string_view match) {
          const std::span<const ByteSpan> of_match = origins(match);
          take_token(id, match, {of_match.front().begin, of_match.back().end});
        });
  };
  raw_added_.Split(text, options.parse_special, encode_raw,
                   [&](int32_t id, std::string_view match) {
                     const auto begin = static_cast<uint32_t>(position(match, text));
                     take_token(id, match, {begin, begin + static_cast<uint32_t>(match.size())});
                   });
  return scratch.status;
}

void StagedTokenizer::EncodePiece(std::string_view piece, std::span<const ByteSpan> origins,
                                  EncodeScratch& scratch, std::vector<int32_t>& ids,
                                  TokenSpans& spans) const {
  scratch.piece_spans.clear();
  model_->Encode(piece, scratch, ids, &scratch.piece_spans);
  for (const ByteSpan& span : scratch.piece_spans) {
    spans.spans.push_back({origins[span.begin].begin, origins[span.end - 1].end});
  }
}

Result<std::string> StagedTokenizer::Decode(std::span<const int32_t> ids,
                                            const DecodeOptions& options) const {
  RETURN_IF_ERROR(decoder_.status());
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (!vocabulary_.Has(id)) {
      continue;
    }
    // As the reference: what a normalized token is looked for as, even where the text had another.
    const auto normalized = normalized_content_.find(id);
    const std::string_view token = normalized == normalized_content_.end()
                                       ? vocabulary_.Piece(id)
                                       : std::string_view(normalized->second);
    if (!options.skip_special_tokens || !special_content_.contains(token)) {
      tokens.emplace_back(token);
    }
  }
  ASSIGN_OR_RETURN(std::string text, decoder_.value().Decode(std::move(tokens)));
  return options.clean_up_spaces ? CleanUpSpaces(std::move(text)) : text;
}

}  // namespace bouquet::text
