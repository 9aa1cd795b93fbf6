#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/dispatch/resumption.h"
#include "model/traffic_class.h"
#include "text/encode_scratch.h"

namespace bouquet::ivy {

/// The inputs of one request on their way through the text workers. Its slices, runs of inputs, may
/// be worked on by several threads at once; each input's result has a place of its own. An error
/// ends the work on later inputs but not on earlier ones, so the error reported is the first by
/// position. Cancellation and deadline are looked at before each input.
class SlicedJob : public Resumption {
 public:
  /// How and for how long a request is served.
  struct Terms {
    model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
    Deadline deadline;
    std::stop_source cancelled;
  };

  /// Into runs of about so many bytes of text. Before the first slice is claimed.
  void Cut(size_t slice_bytes);

  /// Claims the next slice. False when all are claimed.
  bool ClaimSlice(size_t& slice);
  /// True when it was the last one to end.
  bool RunSlice(size_t slice, text::EncodeScratch& scratch);
  size_t num_slices() const { return slices_.size(); }

  const Terms& terms() const { return terms_; }
  size_t num_inputs() const { return input_bytes_.size(); }
  size_t num_bytes() const;  // of text, all inputs together
  /// Once the last slice has ended.
  const Status& error() const { return error_; }

 protected:
  /// `input_bytes`: how much text each input has; what needs no work worth a slice has none.
  SlicedJob(Terms terms, std::vector<size_t> input_bytes, const Clock& clock);

  /// Thread: any, one for each index.
  virtual Status RunInput(size_t index, text::EncodeScratch& scratch) = 0;

 private:
  struct Slice {
    size_t first = 0;
    size_t count = 0;
  };

  Status RunInTime(size_t index, text::EncodeScratch& scratch);
  void Fail(size_t index, Status error);

  const Terms terms_;
  const std::vector<size_t> input_bytes_;  // [num_inputs]
  const Clock& clock_;
  std::vector<Slice> slices_;
  std::atomic<size_t> next_slice_ = 0;
  std::atomic<size_t> slices_left_ = 0;
  std::atomic<size_t> first_failure_;  // index of an input; num_inputs when none has failed
  std::mutex error_mutex_;
  Status error_;  // of input first_failure_
};

}  // namespace bouquet::ivy
