#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/sliced_job.h"
#include "text/text_pipeline.h"

namespace bouquet::ivy {

/// What tokens a request may have.
struct TokenizeLimits {
  int32_t vocabulary_rows = 0;     // ids are 0 .. vocabulary_rows - 1
  int32_t model_max_tokens = 0;    // longest input the model allows
  int32_t max_input_tokens = 0;    // the same, or what the operator lowered it to
  int64_t max_request_tokens = 0;  // all inputs together
};

/// How a model's texts are read.
struct TextSource {
  std::shared_ptr<const text::TextPipeline> pipeline;  // null: the model takes token ids only
  std::string no_text_reason;                          // then said to those who send text
  bool exclude_prompt_from_pooling = false;
};

/// One request's inputs on their way to token ids.
class TokenizeJob final : public SlicedJob {
 public:
  /// Everything must outlive the job's last slice; the job takes ids out of `request`.
  TokenizeJob(EncodeRequest& request, const TokenizeLimits& limits, const TextSource& source,
              const Clock& clock);

  /// Cheap checks of the whole request, before anything is tokenized. Error: kInvalidArgument for
  /// an empty input, kUnimplemented for text that is not served; with the input's path.
  Status CheckInputs() const;

  /// Once the last slice has ended.
  std::vector<text::TokenSequence>& sequences() { return sequences_; }

 private:
  Status RunInput(size_t index, text::EncodeScratch& scratch) override;
  Status RunText(size_t index, std::string_view text, text::EncodeScratch& scratch);
  Status TakeIds(size_t index, std::vector<int32_t>& ids);
  Status CheckLength(size_t index, int32_t num_tokens) const;

  int32_t LongestInput() const;
  std::string PathOf(size_t index) const;

  EncodeRequest& request_;
  const TokenizeLimits limits_;
  const TextSource& source_;
  std::vector<text::TokenSequence> sequences_;  // [num_inputs]
  std::atomic<int64_t> num_tokens_ = 0;
};

}  // namespace bouquet::ivy
