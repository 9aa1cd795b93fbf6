#include "ivy/encode/sliced_job.h"

#include <numeric>
#include <utility>

namespace bouquet::ivy {

SlicedJob::SlicedJob(Terms terms, std::vector<size_t> input_bytes, const Clock& clock)
    : terms_(std::move(terms)),
      input_bytes_(std::move(input_bytes)),
      clock_(clock),
      first_failure_(input_bytes_.size()) {}

void SlicedJob::Cut(size_t slice_bytes) {
  size_t bytes = 0;
  for (size_t i = 0; i < input_bytes_.size(); ++i) {
    if (slices_.empty() || bytes + input_bytes_[i] > slice_bytes) {
      slices_.push_back({i, 0});
      bytes = 0;
    }
    ++slices_.back().count;
    bytes += input_bytes_[i];
  }
  slices_left_ = slices_.size();
}

size_t SlicedJob::num_bytes() const {
  return std::accumulate(input_bytes_.begin(), input_bytes_.end(), size_t{0});
}

bool SlicedJob::ClaimSlice(size_t& slice) {
  slice = next_slice_.fetch_add(1, std::memory_order_relaxed);
  return slice < slices_.size();
}

bool SlicedJob::RunSlice(size_t slice, text::EncodeScratch& scratch) {
  const Slice& run = slices_[slice];
  for (size_t i = run.first; i < run.first + run.count; ++i) {
    if (i >= first_failure_.load(std::memory_order_relaxed)) {
      break;
    }
    if (Status status = RunInTime(i, scratch); !status.ok()) {
      Fail(i, std::move(status));
      break;
    }
  }
  return slices_left_.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

Status SlicedJob::RunInTime(size_t index, text::EncodeScratch& scratch) {
  if (terms_.cancelled.stop_requested()) {
    return Cancelled("cancelled while tokenizing");
  }
  if (terms_.deadline.HasPassed(clock_.Now())) {
    return DeadlineExceeded("deadline passed while tokenizing");
  }
  return RunInput(index, scratch);
}

void SlicedJob::Fail(size_t index, Status error) {
  const std::lock_guard lock(error_mutex_);
  if (index < first_failure_.load(std::memory_order_relaxed)) {
    first_failure_.store(index, std::memory_order_relaxed);
    error_ = std::move(error);
  }
}

}  // namespace bouquet::ivy
