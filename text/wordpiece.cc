#include "text/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "base/check.h"
#include "base/log.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {

WordPiece::WordPiece(const WordPieceSpec& spec)
    : trie_(DoubleArrayTrie::Build(spec.tokens)),
      continuing_(trie_.Walk(DoubleArrayTrie::kRoot, spec.continuing_prefix)),
      unknown_id_(Id(spec.unknown_token)),
      max_characters_per_word_(static_cast<size_t>(spec.max_characters_per_word)),
      has_empty_token_(
          std::ranges::any_of(spec.tokens, [](const auto& token) { return token.first.empty(); })) {
  CHECK_GE(unknown_id_, 0);
}

int32_t WordPiece::Id(std::string_view token) const {
  const DoubleArrayTrie::Node node = trie_.Walk(DoubleArrayTrie::kRoot, token);
  return node == DoubleArrayTrie::kDead || token.empty() ? -1 : trie_.Value(node);
}

void WordPiece::Encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > max_characters_per_word_ &&
      unicode::CountCodePoints(word) > max_characters_per_word_) {
    ids.push_back(unknown_id_);
    return;
  }
  const size_t size_before = ids.size();
  DoubleArrayTrie::Node from = DoubleArrayTrie::kRoot;
  while (!word.empty()) {
    // A token is whole code points, so a match ends between two.
    const DoubleArrayTrie::Match match = from == DoubleArrayTrie::kDead
                                             ? DoubleArrayTrie::Match{0, DoubleArrayTrie::kNoValue}
                                             : trie_.LongestPrefix(word, from);
    if (match.num_bytes == 0) {
      ids.resize(size_before);
      ids.push_back(unknown_id_);
      return;
    }
    ids.push_back(match.value);
    word.remove_prefix(match.num_bytes);
    from = continuing_;
  }
}

WordPieceTokenizer::WordPieceTokenizer(const WordPieceSpec& spec, Normalizer normalizer,
                                       PreTokenizer pre_tokenizer)
    : model_(spec), normalizer_(std::move(normalizer)), pre_tokenizer_(std::move(pre_tokenizer)) {
  for (const auto& [piece, id] : spec.tokens) {
    vocabulary_.Set(id, piece);
  }
}

Result<std::unique_ptr<WordPieceTokenizer>> WordPieceTokenizer::Create(
    const WordPieceSpec& spec, Normalizer normalizer, PreTokenizer pre_tokenizer,
    const std::vector<AddedToken>& added) {
  std::unique_ptr<WordPieceTokenizer> tokenizer(
      new WordPieceTokenizer(spec, std::move(normalizer), std::move(pre_tokenizer)));
  ASSIGN_OR_RETURN(const std::vector<AddedToken> settled, tokenizer->SettleIds(added));
  RETURN_IF_ERROR(tokenizer->AddTokens(settled));
  return tokenizer;
}

Result<std::vector<AddedToken>> WordPieceTokenizer::SettleIds(
    const std::vector<AddedToken>& added) const {
  std::map<std::string_view, AddedToken> by_content;
  auto next_id = static_cast<int32_t>(model_.num_tokens());
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
      const int32_t own_id = model_.Id(stated.content);
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
    by_content.insert_or_assign(stated.content, std::move(token));
  }
  if (num_moved > 0) {
    LogWarning("added tokens have other ids than the tokenizer file says: {}, the first {}",
               num_moved, moved_example);
  }
  std::vector<AddedToken> settled;
  settled.reserve(by_content.size());
  for (auto& [content, token] : by_content) {
    settled.push_back(std::move(token));
  }
  return settled;
}

Status WordPieceTokenizer::AddTokens(const std::vector<AddedToken>& settled) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::vector<std::string> raw_patterns;
  std::vector<std::string> normalized_patterns;
  EncodeScratch scratch;
  for (const AddedToken& token : settled) {
    vocabulary_.Set(token.id, token.content);
    if (!token.normalized) {
      raw.push_back(token);
      raw_patterns.push_back(token.content);
      continue;
    }
    const std::string_view pattern = normalizer_.Normalize(token.content, scratch);
    if (pattern.empty()) {
      return Unimplemented(
          fmt::format("an added token that normalizes to nothing is not served: id {}", token.id),
          "added_tokens");
    }
    normalized.push_back(token);
    normalized_patterns.emplace_back(pattern);
  }
  raw_added_ = AddedTokenMatcher::Build(std::move(raw), raw_patterns);
  normalized_added_ = AddedTokenMatcher::Build(std::move(normalized), normalized_patterns);
  return {};
}

void WordPieceTokenizer::Encode(std::string_view text, const EncodeOptions& options,
                                EncodeScratch& scratch, std::vector<int32_t>& ids) const {
  assert(!unicode::FindInvalidUtf8(text).has_value());
  const auto take_token = [&ids](int32_t id) { ids.push_back(id); };
  const auto encode_normalized = [&](std::string_view normalized) {
    for (const std::string_view piece : pre_tokenizer_.Split(normalized, scratch)) {
      model_.Encode(piece, ids);
    }
  };
  raw_added_.Split(
      text, options.parse_special,
      [&](std::string_view raw) {
        normalized_added_.Split(normalizer_.Normalize(raw, scratch), options.parse_special,
                                encode_normalized, take_token);
      },
      take_token);
}

}  // namespace bouquet::text
