#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "rose/batch.h"
#include "tulip/sequence.h"

namespace bouquet::tulip {

struct SchedulerOptions {
  /// Target of one step. A sequence that is longer runs alone in its step.
  int32_t step_tokens = 1024;
  int32_t max_batch_sequences = 512;
  /// From this age on, bulk work has a turn of its own beside interactive work.
  std::chrono::milliseconds bulk_age{500};
};

/// A step's work. Kept by its owner from step to step, so that its memory is reused.
struct ScheduledBatch {
  rose::Batch input;
  std::vector<Sequence> sequences;  // row range i of the result belongs to sequences[i]
  /// Left the queue without being computed: cancelled, or past their deadline. To be answered too.
  std::vector<Sequence> cancelled;
  std::vector<Sequence> expired;

  void Clear();
  void Append(Sequence sequence);
  int32_t num_tokens() const { return input.num_tokens(); }
};

/// Decides what the next step computes. Within a class the order is first come first served: the
/// first sequence that does not fit closes the batch. Interactive work goes first and bulk work
/// fills the rest of the step; while bulk work older than `bulk_age` waits, it goes first in every
/// `kStepsPerBulkTurn`-th step, so it never starves and an interactive sequence waits one step more
/// at most. What is too late or cancelled leaves the queue before a batch is formed, wherever it
/// stands. Pure: no threads, no clock, no locks; time is an argument.
class Scheduler {
 public:
  static constexpr int32_t kStepsPerBulkTurn = 4;

  explicit Scheduler(const SchedulerOptions& options) : options_(options) {}

  /// `sequence` must hold a token.
  void Add(Sequence sequence);

  /// Replaces the content of `next`. True when there is something to compute; `next.cancelled` and
  /// `next.expired` may hold sequences either way.
  bool NextBatch(TimePoint now, ScheduledBatch& next);

  /// Appends everything that waits to `sequences`, in order, and forgets it.
  void TakeAll(std::vector<Sequence>& sequences);

  bool empty() const { return num_sequences() == 0; }
  int64_t num_sequences() const;
  int64_t num_tokens() const { return num_tokens_; }  // waiting

 private:
  using Lane = std::deque<Sequence>;

  void DropDead(TimePoint now, ScheduledBatch& next);
  bool Fits(const Sequence& sequence, const ScheduledBatch& next) const;
  bool TakeWhatFits(Lane& lane, ScheduledBatch& next);

  SchedulerOptions options_;
  Lane interactive_;
  Lane bulk_;
  int64_t num_tokens_ = 0;
  int32_t steps_without_bulk_ = 0;  // in a row, with aged bulk work waiting
};

}  // namespace bouquet::tulip
