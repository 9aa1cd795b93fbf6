#include "text/text_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "text/framing.h"
#include "text/post_processor.h"
#include "text/tokenizer_file.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

Status CheckUtf8(std::string_view text, std::string_view what) {
  if (const std::optional<size_t> invalid = unicode::FindInvalidUtf8(text)) {
    return InvalidArgument(fmt::format("{} is not valid UTF-8: byte offset {}", what, *invalid));
  }
  return {};
}

bool IsOver(const LengthPolicy& policy, size_t num_tokens) {
  return policy.max_tokens > 0 && num_tokens > static_cast<size_t>(policy.max_tokens);
}

Status TooLong(const LengthPolicy& policy, size_t num_tokens) {
  return InvalidArgument(fmt::format("input is longer than the model allows: {} tokens, limit {}",
                                     num_tokens, policy.max_tokens));
}

Status NoRoom(const LengthPolicy& policy, size_t num_special, size_t num_prompt) {
  return InvalidArgument(
      fmt::format("truncation leaves no room for the text: {} special tokens and {} of the prompt, "
                  "limit {}",
                  num_special, num_prompt, policy.max_tokens));
}

/// Tokens left for the texts.
size_t Room(const LengthPolicy& policy, size_t num_special) {
  const auto limit = static_cast<size_t>(policy.max_tokens);
  return limit > num_special ? limit - num_special : 0;
}

struct PairRoom {
  size_t first;
  size_t second;
};

/// How many tokens of each of two texts stay, which together are more than `room`; nullopt where
/// that leaves too little.
std::optional<PairRoom> ShareRoom(PairTruncation truncation, size_t room, size_t first,
                                  size_t second) {
  const size_t surplus = first + second - room;
  switch (truncation) {
    case PairTruncation::kSecondFirst: {
      const size_t left_by_second = room > second ? room - second : 0;
      const size_t room_of_first = std::min(first, std::max(room * 3 / 4, left_by_second));
      return room < 2 ? std::nullopt : std::optional(PairRoom{room_of_first, room - room_of_first});
    }
    case PairTruncation::kLongestFirst: {
      const size_t shorter = std::min(first, second);
      PairRoom rooms = {shorter, room - std::min(room, shorter)};
      if (rooms.second < shorter) {  // both are cut, the longer one to the larger half
        rooms = {room / 2, room - room / 2};
      }
      if (first > second) {
        std::swap(rooms.first, rooms.second);
      }
      return rooms;
    }
    case PairTruncation::kOnlyFirst:
      return first > surplus ? std::optional(PairRoom{first - surplus, second}) : std::nullopt;
    case PairTruncation::kOnlySecond:
      return second > surplus ? std::optional(PairRoom{first, second - surplus}) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

class TextPipeline::Impl {
 public:
  explicit Impl(TokenizerFile file)
      : tokenizer(std::move(file.tokenizer)), post_processor(std::move(file.post_processor)) {}

  /// The tokens of one text. `ids` and `spans` are of the scratch.
  Result<KeptTokens> Tokenize(std::string_view text, const PipelineOptions& options,
                              EncodeScratch& scratch, std::vector<int32_t>& ids,
                              TokenSpans& spans) const {
    ids.clear();
    const EncodeOptions encode_options = {.parse_special = options.parse_special};
    RETURN_IF_ERROR(options.with_spans
                        ? tokenizer->EncodeWithSpans(text, encode_options, scratch, ids, spans)
                        : tokenizer->Encode(text, encode_options, scratch, ids));
    return KeptTokens{&ids, options.with_spans ? &spans : nullptr, text, 0, 0, ids.size()};
  }

  /// Of prompt and text, joined as text: the reference puts the prompt before the tokenizer.
  Result<KeptTokens> TokenizeWithPrompt(std::string_view text, const PipelineOptions& options,
                                        EncodeScratch& scratch) const {
    RETURN_IF_ERROR(CheckUtf8(text, "text"));
    RETURN_IF_ERROR(CheckUtf8(options.prompt, "prompt"));
    if (!options.prompt.empty()) {
      scratch.joined.assign(options.prompt).append(text);
      text = scratch.joined;
    }
    return Tokenize(text, options, scratch, scratch.ids, scratch.spans);
  }

  /// Tokens of the prompt by itself, as the reference counts them; no more than `num_tokens`, which
  /// is fewer where the prompt's last word grows into the text.
  Result<size_t> CountPrompt(const PipelineOptions& options, size_t num_tokens,
                             EncodeScratch& scratch) const {
    scratch.prompt_ids.clear();
    if (!options.prompt.empty()) {
      RETURN_IF_ERROR(tokenizer->Encode(options.prompt, {.parse_special = options.parse_special},
                                        scratch, scratch.prompt_ids));
    }
    return std::min(scratch.prompt_ids.size(), num_tokens);
  }

  Result<TokenSequence> Finish(const SequenceTemplate& frame, const PipelineOptions& options,
                               KeptTokens first, std::optional<KeptTokens> second,
                               size_t num_untruncated, EncodeScratch& scratch) const;

  std::unique_ptr<Tokenizer> tokenizer;
  PostProcessor post_processor;
};

Result<TokenSequence> TextPipeline::Impl::Finish(const SequenceTemplate& frame,
                                                 const PipelineOptions& options, KeptTokens first,
                                                 std::optional<KeptTokens> second,
                                                 size_t num_untruncated,
                                                 EncodeScratch& scratch) const {
  const size_t num_tokens =
      options.length.max_tokens > 0
          ? std::min(num_untruncated, static_cast<size_t>(options.length.max_tokens))
          : num_untruncated;
  const bool add_special_tokens = options.add_special_tokens;
  TrimSpans(post_processor.trimmings, add_special_tokens, *tokenizer, first);
  if (second) {
    TrimSpans(post_processor.trimmings, add_special_tokens, *tokenizer, *second);
  }
  TokenSequence sequence =
      Assemble(frame, add_special_tokens, first, second ? &*second : nullptr, num_tokens);
  sequence.untruncated_tokens = static_cast<int32_t>(num_untruncated);
  if (options.exclude_prompt_from_pooling && !options.prompt.empty()) {
    const int32_t num_leading = add_special_tokens ? frame.num_leading_tokens() : 0;
    ASSIGN_OR_RETURN(const size_t num_prompt, CountPrompt(options, first.ids->size(), scratch));
    sequence.pooling_start = num_leading + static_cast<int32_t>(num_prompt);
    if (sequence.pooling_start >= static_cast<int32_t>(sequence.ids.size())) {
      return InvalidArgument("text has no tokens beside its prompt, which pooling leaves out");
    }
  }
  return sequence;
}

TextPipeline::TextPipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextPipeline::~TextPipeline() = default;

Result<std::unique_ptr<TextPipeline>> TextPipeline::Load(const std::filesystem::path& folder,
                                                         bool lowercase_first) {
  ASSIGN_OR_RETURN(TokenizerFile file, ReadTokenizerFolder(folder, lowercase_first));
  return std::unique_ptr<TextPipeline>(new TextPipeline(std::make_unique<Impl>(std::move(file))));
}

Result<TokenSequence> TextPipeline::Encode(std::string_view text, const PipelineOptions& options,
                                           EncodeScratch& scratch) const {
  const SequenceTemplate& frame = impl_->post_processor.single;
  const LengthPolicy& policy = options.length;
  ASSIGN_OR_RETURN(KeptTokens kept, impl_->TokenizeWithPrompt(text, options, scratch));
  const auto num_special =
      static_cast<size_t>(options.add_special_tokens ? frame.num_special_tokens() : 0);
  const size_t num_tokens = kept.ids->size() + num_special;
  if (IsOver(policy, num_tokens)) {
    if (policy.over_length == OverLength::kError) {
      return TooLong(policy, num_tokens);
    }
    if (policy.pair == PairTruncation::kOnlySecond) {
      return InvalidArgument("truncation is to shorten the second text, and there is none");
    }
    const size_t room = Room(policy, num_special);
    ASSIGN_OR_RETURN(const size_t num_prompt,
                     impl_->CountPrompt(options, kept.ids->size(), scratch));
    if (room <= num_prompt) {
      return NoRoom(policy, num_special, num_prompt);
    }
    Cut(kept, num_prompt, room, policy.side);
  }
  return impl_->Finish(frame, options, kept, std::nullopt, num_tokens, scratch);
}

Result<TokenSequence> TextPipeline::EncodePair(std::string_view first, std::string_view second,
                                               const PipelineOptions& options,
                                               EncodeScratch& scratch) const {
  if (!impl_->post_processor.pair) {
    return Unimplemented("pairs are not served: the tokenizer states no template for them");
  }
  const SequenceTemplate& frame = *impl_->post_processor.pair;
  const LengthPolicy& policy = options.length;
  RETURN_IF_ERROR(CheckUtf8(second, "second text"));
  ASSIGN_OR_RETURN(KeptTokens kept, impl_->TokenizeWithPrompt(first, options, scratch));
  ASSIGN_OR_RETURN(
      KeptTokens kept_second,
      impl_->Tokenize(second, options, scratch, scratch.second_ids, scratch.second_spans));
  const auto num_special =
      static_cast<size_t>(options.add_special_tokens ? frame.num_special_tokens() : 0);
  const size_t num_tokens = kept.ids->size() + kept_second.ids->size() + num_special;
  if (IsOver(policy, num_tokens)) {
    if (policy.over_length == OverLength::kError) {
      return TooLong(policy, num_tokens);
    }
    const size_t room = Room(policy, num_special);
    const std::optional<PairRoom> rooms =
        ShareRoom(policy.pair, room, kept.ids->size(), kept_second.ids->size());
    ASSIGN_OR_RETURN(const size_t num_prompt,
                     impl_->CountPrompt(options, kept.ids->size(), scratch));
    if (!rooms || (num_prompt > 0 && rooms->first <= num_prompt && num_prompt < kept.ids->size())) {
      return NoRoom(policy, num_special, num_prompt);
    }
    Cut(kept, num_prompt, rooms->first, policy.side);
    Cut(kept_second, 0, rooms->second, policy.side);
  }
  return impl_->Finish(frame, options, kept, kept_second, num_tokens, scratch);
}

Result<TokenSequence> TextPipeline::TakeIds(std::vector<int32_t> ids,
                                            const PipelineOptions& options) const {
  const LengthPolicy& policy = options.length;
  TokenSequence sequence;
  sequence.untruncated_tokens = static_cast<int32_t>(ids.size());
  if (IsOver(policy, ids.size())) {
    if (policy.over_length == OverLength::kError) {
      return TooLong(policy, ids.size());
    }
    if (policy.side == TruncationSide::kLeft) {
      ids.erase(ids.begin(), ids.end() - policy.max_tokens);
    } else {
      ids.resize(static_cast<size_t>(policy.max_tokens));
    }
  }
  sequence.ids = std::move(ids);
  return sequence;
}

Result<std::string> TextPipeline::Decode(std::span<const int32_t> ids,
                                         const DecodeOptions& options) const {
  return impl_->tokenizer->Decode(ids, options);
}

const Tokenizer& TextPipeline::tokenizer() const { return *impl_->tokenizer; }

int32_t TextPipeline::num_special_tokens() const {
  return impl_->post_processor.single.num_special_tokens();
}

}  // namespace bouquet::text
