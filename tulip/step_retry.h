#pragma once

#include <cstdint>
#include <vector>

#include "tulip/scheduler.h"
#include "tulip/sequence.h"

namespace bouquet::tulip {

/// Finds the sequence that makes steps fail, or that makes rows beside it not finite: the halves of
/// what failed are tried again as steps of their own, depth first, until one sequence is alone with
/// the failure. The same halves are what a step that ran out of memory needs. Pure.
///
/// One poison among 512 sequences costs nine failures in a row. After `kMaxFailuresInARow` it is
/// the engine that is broken, and what has failed stays failed.
class StepRetry {
 public:
  static constexpr int32_t kMaxFailuresInARow = 24;

  /// Takes what failed in a step to try it again: all of the step's sequences, or only the suspects
  /// among them. False, and `failed` stays whole, when it is to be answered with the failure.
  bool Add(std::vector<Sequence>& failed, bool was_whole_step);
  void NoteSuccess() { failures_in_a_row_ = 0; }

  /// Replaces the content of `next`. True when it holds something to compute; `next.cancelled` and
  /// `next.expired` may hold sequences either way.
  bool NextBatch(TimePoint now, ScheduledBatch& next);

  void TakeAll(std::vector<Sequence>& sequences);
  bool empty() const { return groups_.empty(); }

 private:
  std::vector<std::vector<Sequence>> groups_;  // the last one is next
  int32_t failures_in_a_row_ = 0;
};

}  // namespace bouquet::tulip
