#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "model/output_spec.h"

namespace bouquet::tulip {

/// The reply slot of one chunk, the sequences that were submitted together: rows, a status per
/// sequence and timings are written here as its steps end, and OnComplete is called once, after the
/// last one. Sequences of one chunk may be answered by different threads at once; each writes its
/// own place only.
class ChunkReply {
 public:
  struct Outcome {
    Status status;
    Microseconds queue{0};  // from admission to the start of the step
    Microseconds step{0};   // the step's own duration; 0 when it was never computed
  };

  /// `cancelled` is read by the queue when the next batch is formed.
  explicit ChunkReply(std::stop_token cancelled) : cancelled_(std::move(cancelled)) {}
  virtual ~ChunkReply() = default;
  ChunkReply(const ChunkReply&) = delete;
  ChunkReply& operator=(const ChunkReply&) = delete;

  bool cancelled() const { return cancelled_.stop_requested(); }

  /// True from just before OnComplete on: from then the members below may be read and taken.
  bool complete() const { return remaining_.load(std::memory_order_acquire) == 0; }
  /// True when a sequence of the chunk has been put into a step. Thread: any.
  bool started() const { return started_.load(std::memory_order_relaxed); }

  uint32_t dimensions() const { return dimensions_; }
  model::RowDtype dtype() const { return dtype_; }
  size_t row_bytes() const { return RowBytes(dtype_, dimensions_); }
  /// [num_sequences, row_bytes]; the row of a sequence that failed is zero.
  std::span<const std::byte> row_data() const {
    return std::as_bytes(std::span(rows_)).first(outcomes_.size() * row_bytes());
  }
  /// The same of float32 rows, to be taken: [num_sequences, dimensions].
  std::vector<float>& rows();
  /// [num_sequences]
  std::vector<Outcome>& outcomes() { return outcomes_; }

  // What follows is Tulip's side.

  void Open(size_t num_sequences, uint32_t dimensions, model::RowDtype dtype);
  void MarkStarted() { started_.store(true, std::memory_order_relaxed); }
  void PutRow(uint32_t index, std::span<const std::byte> row);
  /// Answers one sequence, once. May call OnComplete.
  void Finish(uint32_t index, Outcome outcome);

 protected:
  /// Thread: whichever answered last, so hand over and return. Owner stays alive during the call.
  virtual void OnComplete() = 0;

 private:
  const std::stop_token cancelled_;
  std::atomic<bool> started_ = false;
  std::atomic<int64_t> remaining_ = -1;  // not open yet
  uint32_t dimensions_ = 0;
  model::RowDtype dtype_ = model::RowDtype::kFloat32;
  std::vector<float> rows_;  // memory for rows of any dtype
  std::vector<Outcome> outcomes_;
};

}  // namespace bouquet::tulip
