#include "ivy/encode/text_job.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/check.h"

namespace bouquet::ivy {
namespace {

std::vector<size_t> BytesOf(const TextRequest& request) {
  constexpr size_t kBytesOfId = 4;  // of the text that it stands for, about
  std::vector<size_t> bytes;
  bytes.reserve(request.inputs.size());
  for (const EncodeInput& input : request.inputs) {
    const auto* text = std::get_if<std::string>(&input);
    bytes.push_back(text != nullptr ? text->size() + request.prompt.size()
                                    : kBytesOfId * std::get<std::vector<int32_t>>(input).size());
  }
  return bytes;
}

}  // namespace

TextJob::TextJob(TextRequest& request, int64_t max_request_tokens, const TextSource& source,
                 const Clock& clock)
    : SlicedJob({request.traffic_class, request.deadline, request.cancelled}, BytesOf(request),
                clock),
      request_(request),
      max_request_tokens_(max_request_tokens),
      pipeline_(*source.pipeline),
      answers_(request.inputs.size()) {
  CHECK(source.pipeline != nullptr);
}

Status TextJob::RunInput(size_t index, text::EncodeScratch& scratch) {
  EncodeInput& input = request_.inputs[index];
  if (auto* text = std::get_if<std::string>(&input)) {
    return Tokenize(index, *text, scratch);
  }
  return Decode(index, std::get<std::vector<int32_t>>(input));
}

Status TextJob::Tokenize(size_t index, std::string& text, text::EncodeScratch& scratch) {
  text::PipelineOptions options;
  options.prompt = request_.prompt;
  options.add_special_tokens = request_.add_special_tokens;
  options.parse_special = request_.parse_special;
  options.with_spans = !request_.count_only;
  Result<text::TokenSequence> encoded = pipeline_.Encode(text, options, scratch);
  if (!encoded.ok()) {
    return Status(encoded.code(), encoded.status().message(), PathOf(index));
  }
  TextAnswer& answer = answers_[index];
  answer.tokens = std::move(encoded).value();
  if (request_.count_only) {
    return {};
  }
  const auto length = static_cast<int64_t>(answer.tokens.ids.size());
  const int64_t total = num_tokens_.fetch_add(length, std::memory_order_relaxed) + length;
  if (total > max_request_tokens_) {
    return OutOfRange(fmt::format("the request has more tokens than allowed: at least {}, limit {} "
                                  "(--max-tokens-per-request); \"count_only\" has no limit",
                                  total, max_request_tokens_),
                      request_.field);
  }
  answer.text = request_.prompt + text;
  answer.pieces.reserve(answer.tokens.ids.size());
  for (const int32_t id : answer.tokens.ids) {
    answer.pieces.emplace_back(pipeline_.tokenizer().Piece(id));
  }
  return {};
}

Status TextJob::Decode(size_t index, const std::vector<int32_t>& ids) {
  const int32_t num_ids = pipeline_.tokenizer().vocabulary_size();
  for (size_t j = 0; j < ids.size(); ++j) {
    if (ids[j] < 0 || ids[j] >= num_ids) {
      return InvalidArgument(fmt::format("token ids must be 0..{}: {}", num_ids - 1, ids[j]),
                             fmt::format("{}[{}]", PathOf(index), j));
    }
  }
  Result<std::string> text =
      pipeline_.Decode(ids, {.skip_special_tokens = request_.skip_special_tokens});
  if (!text.ok()) {
    return Status(text.code(), text.status().message(), PathOf(index));
  }
  answers_[index].text = std::move(text).value();
  return {};
}

std::string TextJob::PathOf(size_t index) const {
  return request_.field_is_list ? fmt::format("{}[{}]", request_.field, index) : request_.field;
}

}  // namespace bouquet::ivy
