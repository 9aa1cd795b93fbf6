#include "text/text_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/post_processor.h"
#include "text/tokenizer_file.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using Part = SequenceTemplate::Part;

/// The tokens of one text that are kept: the first `num_head`, then `begin` .. `end`.
struct Kept {
  const std::vector<int32_t>* ids = nullptr;
  size_t num_head = 0;
  size_t begin = 0;
  size_t end = 0;
};

Kept KeepAll(const std::vector<int32_t>& ids) { return {&ids, 0, 0, ids.size()}; }

/// Keeps `room` tokens. What is cut is cut at `side` of what follows the prompt.
Kept Keep(const std::vector<int32_t>& ids, size_t num_prompt, size_t room, TruncationSide side) {
  if (ids.size() <= room) {
    return KeepAll(ids);
  }
  if (side == TruncationSide::kRight) {
    return {&ids, 0, 0, room};
  }
  return {&ids, num_prompt, ids.size() - (room - num_prompt), ids.size()};
}

/// Special tokens and texts in the order of the template.
TokenSequence Assemble(const SequenceTemplate& frame, bool add_special_tokens, const Kept& first,
                       const Kept* second, size_t num_tokens) {
  TokenSequence sequence;
  sequence.ids.reserve(num_tokens);
  const auto append = [&](const int32_t* begin, const int32_t* end, uint8_t type_id) {
    if (begin == end) {
      return;
    }
    if (type_id != 0 && sequence.type_ids.empty()) {  // so far all were 0, and left out
      sequence.type_ids.reserve(num_tokens);
      sequence.type_ids.resize(sequence.ids.size(), 0);
    }
    const bool has_types = type_id != 0 || !sequence.type_ids.empty();
    sequence.ids.insert(sequence.ids.end(), begin, end);
    if (has_types) {
      sequence.type_ids.resize(sequence.ids.size(), type_id);
    }
  };
  for (const Part& part : frame.parts) {
    if (part.kind == Part::Kind::kSpecial) {
      if (add_special_tokens) {
        append(part.ids.data(), part.ids.data() + part.ids.size(), part.type_id);
      }
      continue;
    }
    const Kept& kept = part.kind == Part::Kind::kFirst ? first : *second;
    const uint8_t bare_type =
        part.kind == Part::Kind::kFirst ? frame.bare_first_type : frame.bare_second_type;
    const uint8_t type_id = add_special_tokens ? part.type_id : bare_type;
    const int32_t* ids = kept.ids->data();
    append(ids, ids + kept.num_head, type_id);
    append(ids + kept.begin, ids + kept.end, type_id);
  }
  return sequence;
}

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

}  // namespace

class TextPipeline::Impl {
 public:
  explicit Impl(TokenizerFile file)
      : tokenizer(std::move(file.tokenizer)), post_processor(std::move(file.post_processor)) {}

  /// Ids of prompt and text, joined as text: the reference puts the prompt before the tokenizer.
  Status TokenizeWithPrompt(std::string_view text, const PipelineOptions& options,
                            EncodeScratch& scratch, std::vector<int32_t>& ids) const {
    RETURN_IF_ERROR(CheckUtf8(text, "text"));
    RETURN_IF_ERROR(CheckUtf8(options.prompt, "prompt"));
    if (!options.prompt.empty()) {
      scratch.joined.assign(options.prompt).append(text);
      text = scratch.joined;
    }
    ids.clear();
    tokenizer->Encode(text, {.parse_special = options.parse_special}, scratch, ids);
    return {};
  }

  /// Tokens of the prompt by itself, as the reference counts them; no more than `num_tokens`, which
  /// is fewer where the prompt's last word grows into the text.
  size_t CountPrompt(const PipelineOptions& options, size_t num_tokens,
                     EncodeScratch& scratch) const {
    scratch.prompt_ids.clear();
    if (!options.prompt.empty()) {
      tokenizer->Encode(options.prompt, {.parse_special = options.parse_special}, scratch,
                        scratch.prompt_ids);
    }
    return std::min(scratch.prompt_ids.size(), num_tokens);
  }

  Result<TokenSequence> Finish(const SequenceTemplate& frame, const PipelineOptions& options,
                               const Kept& first, const Kept* second, size_t num_untruncated,
                               EncodeScratch& scratch) const;

  std::unique_ptr<Tokenizer> tokenizer;
  PostProcessor post_processor;
};

Result<TokenSequence> TextPipeline::Impl::Finish(const SequenceTemplate& frame,
                                                 const PipelineOptions& options, const Kept& first,
                                                 const Kept* second, size_t num_untruncated,
                                                 EncodeScratch& scratch) const {
  const size_t num_tokens =
      options.length.max_tokens > 0
          ? std::min(num_untruncated, static_cast<size_t>(options.length.max_tokens))
          : num_untruncated;
  TokenSequence sequence = Assemble(frame, options.add_special_tokens, first, second, num_tokens);
  sequence.untruncated_tokens = static_cast<int32_t>(num_untruncated);
  if (options.exclude_prompt_from_pooling && !options.prompt.empty()) {
    const int32_t num_leading = options.add_special_tokens ? frame.num_leading_tokens() : 0;
    sequence.pooling_start =
        num_leading + static_cast<int32_t>(CountPrompt(options, first.ids->size(), scratch));
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
  std::vector<int32_t>& ids = scratch.ids;
  RETURN_IF_ERROR(impl_->TokenizeWithPrompt(text, options, scratch, ids));
  const auto num_special =
      static_cast<size_t>(options.add_special_tokens ? frame.num_special_tokens() : 0);
  const size_t num_tokens = ids.size() + num_special;
  Kept kept = KeepAll(ids);
  if (IsOver(policy, num_tokens)) {
    if (policy.over_length == OverLength::kError) {
      return TooLong(policy, num_tokens);
    }
    const size_t room = Room(policy, num_special);
    const size_t num_prompt = impl_->CountPrompt(options, ids.size(), scratch);
    if (room <= num_prompt) {
      return NoRoom(policy, num_special, num_prompt);
    }
    kept = Keep(ids, num_prompt, room, policy.side);
  }
  return impl_->Finish(frame, options, kept, nullptr, num_tokens, scratch);
}

Result<TokenSequence> TextPipeline::EncodePair(std::string_view first, std::string_view second,
                                               const PipelineOptions& options,
                                               EncodeScratch& scratch) const {
  if (!impl_->post_processor.pair) {
    return Unimplemented("pairs are not served: the tokenizer states no template for them");
  }
  const SequenceTemplate& frame = *impl_->post_processor.pair;
  const LengthPolicy& policy = options.length;
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<int32_t>& second_ids = scratch.second_ids;
  RETURN_IF_ERROR(impl_->TokenizeWithPrompt(first, options, scratch, ids));
  RETURN_IF_ERROR(CheckUtf8(second, "second text"));
  second_ids.clear();
  impl_->tokenizer->Encode(second, {.parse_special = options.parse_special}, scratch, second_ids);
  const auto num_special =
      static_cast<size_t>(options.add_special_tokens ? frame.num_special_tokens() : 0);
  const size_t num_tokens = ids.size() + second_ids.size() + num_special;
  Kept kept = KeepAll(ids);
  Kept kept_second = KeepAll(second_ids);
  if (IsOver(policy, num_tokens)) {
    if (policy.over_length == OverLength::kError) {
      return TooLong(policy, num_tokens);
    }
    const size_t room = Room(policy, num_special);
    const size_t left_by_second = room > second_ids.size() ? room - second_ids.size() : 0;
    const size_t room_of_first = std::min(ids.size(), std::max(room * 3 / 4, left_by_second));
    const size_t num_prompt = impl_->CountPrompt(options, ids.size(), scratch);
    if (room < 2 || (num_prompt > 0 && room_of_first <= num_prompt && num_prompt < ids.size())) {
      return NoRoom(policy, num_special, num_prompt);
    }
    kept = Keep(ids, num_prompt, room_of_first, policy.side);
    kept_second = Keep(second_ids, 0, room - room_of_first, policy.side);
  }
  return impl_->Finish(frame, options, kept, &kept_second, num_tokens, scratch);
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

const Tokenizer& TextPipeline::tokenizer() const { return *impl_->tokenizer; }

int32_t TextPipeline::num_special_tokens() const {
  return impl_->post_processor.single.num_special_tokens();
}

}  // namespace bouquet::text
