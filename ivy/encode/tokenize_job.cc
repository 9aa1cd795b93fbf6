#include "ivy/encode/tokenize_job.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace bouquet::ivy {
namespace {

/// Text of each input; ids need no work worth a slice.
std::vector<size_t> BytesOf(const EncodeRequest& request) {
  std::vector<size_t> bytes;
  bytes.reserve(request.inputs.size());
  for (const EncodeInput& input : request.inputs) {
    const auto* text = std::get_if<std::string>(&input);
    bytes.push_back(text == nullptr ? 0 : text->size() + request.prompt.size());
  }
  return bytes;
}

}  // namespace

TokenizeJob::TokenizeJob(EncodeRequest& request, const TokenizeLimits& limits,
                         const TextSource& source, const Clock& clock)
    : SlicedJob({request.traffic_class, request.deadline, request.cancelled}, BytesOf(request),
                clock),
      request_(request),
      limits_(limits),
      source_(source),
      sequences_(request.inputs.size()) {}

Status TokenizeJob::CheckInputs() const {
  if (request_.inputs.empty()) {
    return InvalidArgument(std::string(kEmptyInputMessage), request_.field);
  }
  if (request_.max_tokens && *request_.max_tokens < 1) {
    return InvalidArgument(
        fmt::format("an input must be allowed at least one token: {}", *request_.max_tokens),
        request_.field);
  }
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const EncodeInput& input = request_.inputs[i];
    if (std::visit([](const auto& content) { return content.empty(); }, input)) {
      return InvalidArgument(std::string(kEmptyInputMessage), PathOf(i));
    }
    if (source_.pipeline == nullptr && std::holds_alternative<std::string>(input)) {
      return Unimplemented("this model takes token ids only: " + source_.no_text_reason, PathOf(i));
    }
  }
  return {};
}

Status TokenizeJob::RunInput(size_t index, text::EncodeScratch& scratch) {
  EncodeInput& input = request_.inputs[index];
  if (const auto* text = std::get_if<std::string>(&input)) {
    RETURN_IF_ERROR(RunText(index, *text, scratch));
  } else {
    RETURN_IF_ERROR(TakeIds(index, std::get<std::vector<int32_t>>(input)));
  }
  const auto length = static_cast<int64_t>(sequences_[index].ids.size());
  const int64_t total = num_tokens_.fetch_add(length, std::memory_order_relaxed) + length;
  if (total > limits_.max_request_tokens) {
    return OutOfRange(fmt::format("the request has more tokens than allowed: at least {}, limit {} "
                                  "(--max-tokens-per-request)",
                                  total, limits_.max_request_tokens),
                      request_.field);
  }
  return {};
}

Status TokenizeJob::RunText(size_t index, std::string_view text, text::EncodeScratch& scratch) {
  const bool truncate = request_.over_length == text::OverLength::kTruncate;
  text::PipelineOptions options;
  options.length = {request_.over_length, request_.truncation_side,
                    truncate ? LongestInput() : 0};  // else CheckLength says whose limit it is
  options.prompt = request_.prompt;
  options.exclude_prompt_from_pooling = source_.exclude_prompt_from_pooling;
  options.parse_special = request_.parse_special;
  Result<text::TokenSequence> encoded = source_.pipeline->Encode(text, options, scratch);
  if (!encoded.ok()) {
    return Status(encoded.code(), encoded.status().message(), PathOf(index));
  }
  text::TokenSequence& sequence = sequences_[index];
  sequence = std::move(encoded).value();
  if (sequence.ids.empty()) {
    return InvalidArgument(std::string(kEmptyInputMessage) + ": the text yields no token",
                           PathOf(index));
  }
  RETURN_IF_ERROR(CheckLength(index, static_cast<int32_t>(sequence.ids.size())));
  const auto [lowest, highest] = std::ranges::minmax(sequence.ids);
  if (lowest < 0 || highest >= limits_.vocabulary_rows) {
    return Status(StatusCode::kInternal,
                  fmt::format("the tokenizer gave an id that the model has no row for: {}, {} rows",
                              lowest < 0 ? lowest : highest, limits_.vocabulary_rows),
                  PathOf(index));
  }
  return {};
}

// Verbatim: nothing is added, truncation simply cuts. Here and not in text/, because a model
// without a served tokenizer takes ids too.
Status TokenizeJob::TakeIds(size_t index, std::vector<int32_t>& ids) {
  for (size_t j = 0; j < ids.size(); ++j) {
    if (ids[j] < 0 || ids[j] >= limits_.vocabulary_rows) {
      return InvalidArgument(
          fmt::format("token ids must be 0..{}: {}", limits_.vocabulary_rows - 1, ids[j]),
          fmt::format("{}[{}]", PathOf(index), j));
    }
  }
  const auto num_tokens = static_cast<int32_t>(ids.size());
  const int32_t longest = LongestInput();
  if (num_tokens > longest && request_.over_length == text::OverLength::kTruncate) {
    if (request_.truncation_side == text::TruncationSide::kLeft) {
      ids.erase(ids.begin(), ids.end() - longest);
    } else {
      ids.resize(static_cast<size_t>(longest));
    }
  }
  RETURN_IF_ERROR(CheckLength(index, static_cast<int32_t>(ids.size())));
  sequences_[index].ids = std::move(ids);
  sequences_[index].untruncated_tokens = num_tokens;
  return {};
}

// A number that the model fixes is an invalid value; one that an operator fixes is out of range.
Status TokenizeJob::CheckLength(size_t index, int32_t num_tokens) const {
  if (num_tokens <= LongestInput()) {
    return {};
  }
  if (num_tokens > limits_.model_max_tokens) {
    return InvalidArgument(fmt::format("input is longer than the model allows: {} tokens, limit {}",
                                       num_tokens, limits_.model_max_tokens),
                           PathOf(index));
  }
  if (num_tokens > limits_.max_input_tokens) {
    return OutOfRange(fmt::format("input is longer than allowed: {} tokens, limit {} "
                                  "(--max-input-tokens)",
                                  num_tokens, limits_.max_input_tokens),
                      PathOf(index));
  }
  return InvalidArgument(fmt::format("input is longer than the request allows: {} tokens, limit {}",
                                     num_tokens, *request_.max_tokens),
                         PathOf(index));
}

int32_t TokenizeJob::LongestInput() const {
  const int32_t longest = std::min(limits_.max_input_tokens, limits_.model_max_tokens);
  return request_.max_tokens ? std::min(longest, *request_.max_tokens) : longest;
}

std::string TokenizeJob::PathOf(size_t index) const {
  return request_.field_is_list ? fmt::format("{}[{}]", request_.field, index) : request_.field;
}

}  // namespace bouquet::ivy
