#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/dispatch/resumption.h"
#include "ivy/encode/encode_request.h"
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

/// One request's inputs on their way to token ids. Its slices, runs of inputs, may be worked on by
/// several threads at once; each input's result has a place of its own. An error ends the work on
/// later inputs but not on earlier ones, so the error reported is the first by position.
class TokenizeJob final : public Resumption {
 public:
  /// Everything must outlive the job's last slice; the job takes ids out of `request`.
  TokenizeJob(EncodeRequest& request, const TokenizeLimits& limits, const TextSource& source,
              const Clock& clock, size_t slice_bytes);

  /// Cheap checks of the whole request, before anything is tokenized. Error: kInvalidArgument for
  /// an empty input, kUnimplemented for text that is not served; with the input's path.
  Status CheckInputs() const;

  /// Claims the next slice. False when all are claimed.
  bool ClaimSlice(size_t& slice);
  /// True when it was the last one to end.
  bool RunSlice(size_t slice, text::EncodeScratch& scratch);
  size_t num_slices() const { return slices_.size(); }
  model::TrafficClass traffic_class() const { return request_.traffic_class; }

  // Once the last slice has ended.

  const Status& error() const { return error_; }
  std::vector<text::TokenSequence>& sequences() { return sequences_; }

 private:
  struct Slice {
    size_t first = 0;
    size_t count = 0;
  };

  Status RunInput(size_t index, text::EncodeScratch& scratch);
  Status RunText(size_t index, std::string_view text, text::EncodeScratch& scratch);
  Status TakeIds(size_t index, std::vector<int32_t>& ids);
  Status CheckLength(size_t index, int32_t num_tokens) const;
  void Fail(size_t index, Status error);

  int32_t LongestInput() const;
  std::string PathOf(size_t index) const;

  EncodeRequest& request_;
  const TokenizeLimits limits_;
  const TextSource& source_;
  const Clock& clock_;

  std::vector<Slice> slices_;
  std::vector<text::TokenSequence> sequences_;  // [num_inputs]
  std::atomic<size_t> next_slice_ = 0;
  std::atomic<size_t> slices_left_;
  std::atomic<int64_t> num_tokens_ = 0;
  std::atomic<size_t> first_failure_;  // index of an input; num_inputs when none has failed
  std::mutex error_mutex_;
  Status error_;  // of input first_failure_
};

}  // namespace bouquet::ivy
