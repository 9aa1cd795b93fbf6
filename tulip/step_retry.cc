#include "tulip/step_retry.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace bouquet::tulip {

bool StepRetry::Add(std::vector<Sequence>& failed, bool was_whole_step) {
  ++failures_in_a_row_;
  const bool was_alone = was_whole_step && failed.size() == 1;
  if (was_alone || failures_in_a_row_ > kMaxFailuresInARow) {
    return false;
  }
  if (failed.size() == 1) {
    groups_.push_back(std::move(failed));
    failed.clear();
    return true;
  }
  const auto middle = failed.begin() + static_cast<ptrdiff_t>(failed.size() / 2);
  groups_.emplace_back(std::make_move_iterator(middle), std::make_move_iterator(failed.end()));
  groups_.emplace_back(std::make_move_iterator(failed.begin()), std::make_move_iterator(middle));
  failed.clear();
  return true;
}

bool StepRetry::NextBatch(TimePoint now, ScheduledBatch& next) {
  next.Clear();
  while (!groups_.empty() && next.sequences.empty()) {
    for (Sequence& sequence : groups_.back()) {
      if (sequence.reply->cancelled()) {
        next.cancelled.push_back(std::move(sequence));
      } else if (sequence.deadline.HasPassed(now)) {
        next.expired.push_back(std::move(sequence));
      } else {
        next.Append(std::move(sequence));
      }
    }
    groups_.pop_back();
  }
  return !next.sequences.empty();
}

void StepRetry::TakeAll(std::vector<Sequence>& sequences) {
  for (std::vector<Sequence>& group : groups_) {
    std::ranges::move(group, std::back_inserter(sequences));
  }
  groups_.clear();
}

}  // namespace bouquet::tulip
