#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "rose/lazy_tensor.h"
#include "tulip/scheduler.h"
#include "tulip/sequence.h"

namespace bouquet::tulip {

/// A step that the engine has started.
struct StepInFlight {
  rose::LazyTensor result;
  std::vector<Sequence> sequences;
  int32_t num_tokens = 0;
  TimePoint started;
  TimePoint expected_end;
};

/// What the serving loop learns from a step that has ended.
struct StepOutcome {
  int32_t num_tokens = 0;
  Microseconds duration{0};
  /// Sequences that are still to be answered: all of them when the step as a whole failed, with
  /// `error`; or, `not_finite`, those whose rows are not, of which some may only have lain beside
  /// the one that is to blame.
  std::vector<Sequence> failed;
  Status error;
  bool not_finite = false;
};

/// The steps under way, oldest first: at most as many as the backend allows. The overlap and the
/// back-pressure in one object: the serving loop pushes when there is room, the completer takes the
/// oldest. A step counts as under way until it is delivered.
class InFlight {
 public:
  /// `launch_lead`: how long before the expected end of the newest step the next may be launched.
  InFlight(int32_t capacity, Microseconds launch_lead, const Clock& clock);

  // Called by the serving loop.

  /// When the next step may be launched: at once when nothing is under way, else when the newest
  /// step is expected to end within the launch lead, so that a late arrival still gets in. Nullopt
  /// while there is no room.
  std::optional<TimePoint> LaunchMoment() const;
  bool MayLaunch() const;
  void WaitUntilLaunch();
  void WaitUntilEmpty();
  /// Takes the sequences of `batch` and starts the clock of the step. Requires room.
  void Push(rose::LazyTensor result, ScheduledBatch& batch, TimePoint started,
            Microseconds expected);
  /// Appends what has been learnt since the last call. True when no step is under way, so that
  /// there is nothing more to learn.
  bool TakeOutcomes(std::vector<StepOutcome>& outcomes);
  /// No step will follow.
  void Close();

  // Called by the completer.

  /// Waits for a step. Null once closed and empty. The step is the caller's until PopFront.
  StepInFlight* WaitForFront();
  /// The same without waiting: null as well when there is none yet.
  StepInFlight* Front();
  /// Ends the oldest step: its ring slot in the engine is free, and there is room.
  void PopFront(StepOutcome outcome);

  // Thread: any.

  int64_t num_tokens() const;
  /// True when the oldest step has been under way for `patience` longer than expected.
  bool IsOverdue(TimePoint now, Microseconds patience) const;

 private:
  const StepInFlight& Newest() const { return ring_[(first_ + size_ - 1) % ring_.size()]; }
  StepInFlight& Newest() { return ring_[(first_ + size_ - 1) % ring_.size()]; }
  std::optional<TimePoint> LockedLaunchMoment() const;  // `mutex_` is held

  const Microseconds launch_lead_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable loop_;       // signals the serving loop
  std::condition_variable completer_;  // signals the completer
  std::vector<StepInFlight> ring_;
  size_t first_ = 0;
  size_t size_ = 0;
  std::vector<StepOutcome> outcomes_;  // at most `capacity` between two calls of TakeOutcomes
  bool closed_ = false;
};

}  // namespace bouquet::tulip
