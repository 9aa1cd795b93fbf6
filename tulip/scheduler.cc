#include "tulip/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bouquet::tulip {
void ScheduledBatch::Clear() {
  input.Clear();
  sequences.clear();
  cancelled.clear();
  expired.clear();
}

void ScheduledBatch::Append(Sequence sequence) {
  input.Add(sequence.ids, sequence.type_ids, sequence.pooling_start, sequence.output);
  sequences.push_back(std::move(sequence));
}

void Scheduler::Add(Sequence sequence) {
  CHECK_LT(0, sequence.num_tokens());
  CHECK(sequence.reply != nullptr);
  num_tokens_ += sequence.num_tokens();
  Lane& lane = sequence.traffic_class == model::TrafficClass::kInteractive ? interactive_ : bulk_;
  lane.push_back(std::move(sequence));
}

bool Scheduler::NextBatch(TimePoint now, ScheduledBatch& next) {
  next.Clear();
  DropDead(now, next);

  const bool aged_bulk_waits = !bulk_.empty() && now - bulk_.front().arrival >= options_.bulk_age;
  const bool bulk_goes_first = aged_bulk_waits && steps_without_bulk_ + 1 >= kStepsPerBulkTurn;
  const size_t bulk_before = bulk_.size();
  Lane& first = bulk_goes_first ? bulk_ : interactive_;
  Lane& second = bulk_goes_first ? interactive_ : bulk_;
  if (TakeWhatFits(first, next)) {
    TakeWhatFits(second, next);
  }
  const bool passed_over = aged_bulk_waits && bulk_.size() == bulk_before;
  steps_without_bulk_ = passed_over ? steps_without_bulk_ + 1 : 0;
  return !next.sequences.empty();
}

void Scheduler::TakeAll(std::vector<Sequence>& sequences) {
  for (Lane* lane : {&interactive_, &bulk_}) {
    std::ranges::move(*lane, std::back_inserter(sequences));
    lane->clear();
  }
  num_tokens_ = 0;
}

int64_t Scheduler::num_sequences() const {
  return static_cast<int64_t>(interactive_.size() + bulk_.size());
}

// Looks at everything that waits, not only at the front, so that a client who hangs up frees its
// place in the queue within one step. About 2 ns a sequence; nothing moves when nothing is dead.
void Scheduler::DropDead(TimePoint now, ScheduledBatch& next) {
  for (Lane* lane : {&interactive_, &bulk_}) {
    auto kept_end = lane->begin();
    for (auto it = lane->begin(); it != lane->end(); ++it) {
      const bool cancelled = it->reply->cancelled();
      if (cancelled || it->deadline.HasPassed(now)) {
        num_tokens_ -= it->num_tokens();
        (cancelled ? next.cancelled : next.expired).push_back(std::move(*it));
        continue;
      }
      if (kept_end != it) {
        *kept_end = std::move(*it);
      }
      ++kept_end;
    }
    lane->erase(kept_end, lane->end());
  }
}

bool Scheduler::Fits(const Sequence& sequence, const ScheduledBatch& next) const {
  if (next.sequences.empty()) {
    return true;
  }
  return next.num_tokens() + sequence.num_tokens() <= options_.step_tokens &&
         static_cast<int32_t>(next.sequences.size()) < options_.max_batch_sequences;
}

// True when the lane is used up, so that another may fill the rest of the step.
bool Scheduler::TakeWhatFits(Lane& lane, ScheduledBatch& next) {
  while (!lane.empty() && Fits(lane.front(), next)) {
    num_tokens_ -= lane.front().num_tokens();
    next.Append(std::move(lane.front()));
    lane.pop_front();
  }
  return lane.empty();
}

}  // namespace bouquet::tulip
