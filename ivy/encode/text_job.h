#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/encode/sliced_job.h"
#include "ivy/encode/text_request.h"
#include "ivy/encode/tokenize_job.h"

namespace bouquet::ivy {

/// The inputs of a TextRequest on their way to TextAnswers.
class TextJob final : public SlicedJob {
 public:
  /// Everything must outlive the job's last slice; the job takes texts out of `request`. The source
  /// must have a pipeline. `max_request_tokens`: of all inputs together, unless they are counted
  /// only.
  TextJob(TextRequest& request, int64_t max_request_tokens, const TextSource& source,
          const Clock& clock);

  /// Once the last slice has ended.
  std::vector<TextAnswer>& answers() { return answers_; }

 private:
  Status RunInput(size_t index, text::EncodeScratch& scratch) override;
  Status Tokenize(size_t index, std::string& text, text::EncodeScratch& scratch);
  Status Decode(size_t index, const std::vector<int32_t>& ids);
  std::string PathOf(size_t index) const;

  TextRequest& request_;
  const int64_t max_request_tokens_;
  const text::TextPipeline& pipeline_;
  std::vector<TextAnswer> answers_;  // [num_inputs]
  std::atomic<int64_t> num_tokens_ = 0;
};

}  // namespace bouquet::ivy
