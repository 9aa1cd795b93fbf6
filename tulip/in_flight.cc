#include "tulip/in_flight.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace bouquet::tulip {

InFlight::InFlight(int32_t capacity, Microseconds launch_lead, const Clock& clock)
    : launch_lead_(launch_lead), clock_(clock), ring_(static_cast<size_t>(capacity)) {
  CHECK_LT(0, capacity);
}

std::optional<TimePoint> InFlight::LockedLaunchMoment() const {
  if (size_ == 0) {
    return TimePoint::min();
  }
  if (size_ == ring_.size()) {
    return std::nullopt;
  }
  return Newest().expected_end - launch_lead_;
}

std::optional<TimePoint> InFlight::LaunchMoment() const {
  const std::lock_guard lock(mutex_);
  return LockedLaunchMoment();
}

bool InFlight::MayLaunch() const {
  const std::optional<TimePoint> moment = LaunchMoment();
  return moment && *moment <= clock_.Now();
}

void InFlight::WaitUntilLaunch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::optional<TimePoint> moment = LockedLaunchMoment();
    if (!moment) {
      loop_.wait(lock);
      continue;
    }
    const TimePoint now = clock_.Now();
    if (*moment <= now) {
      return;
    }
    loop_.wait_for(lock, *moment - now);
  }
}

void InFlight::WaitUntilEmpty() {
  std::unique_lock lock(mutex_);
  loop_.wait(lock, [this] { return size_ == 0; });
}

void InFlight::Push(rose::LazyTensor result, ScheduledBatch& batch, TimePoint started,
                    Microseconds expected) {
  {
    const std::lock_guard lock(mutex_);
    CHECK_LT(size_, ring_.size());
    // A step waits for the one before it: they run in order.
    const TimePoint begins = size_ == 0 ? started : std::max(started, Newest().expected_end);
    ++size_;
    StepInFlight& step = Newest();
    step.result = std::move(result);
    step.sequences.swap(batch.sequences);
    step.num_tokens = batch.num_tokens();
    step.started = started;
    step.expected_end = begins + expected;
  }
  completer_.notify_one();
}

bool InFlight::TakeOutcomes(std::vector<StepOutcome>& outcomes) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(outcomes_, std::back_inserter(outcomes));
  outcomes_.clear();
  return size_ == 0;
}

void InFlight::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  completer_.notify_one();
}

StepInFlight* InFlight::WaitForFront() {
  std::unique_lock lock(mutex_);
  completer_.wait(lock, [this] { return size_ > 0 || closed_; });
  return size_ > 0 ? &ring_[first_] : nullptr;
}

StepInFlight* InFlight::Front() {
  const std::lock_guard lock(mutex_);
  return size_ > 0 ? &ring_[first_] : nullptr;
}

void InFlight::PopFront(StepOutcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    CHECK_LT(size_t{0}, size_);
    StepInFlight& step = ring_[first_];
    step.result = {};
    step.sequences.clear();
    first_ = (first_ + 1) % ring_.size();
    --size_;
    outcomes_.push_back(std::move(outcome));
  }
  loop_.notify_one();
}

int64_t InFlight::num_tokens() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (size_t i = 0; i < size_; ++i) {
    total += ring_[(first_ + i) % ring_.size()].num_tokens;
  }
  return total;
}

bool InFlight::IsOverdue(TimePoint now, Microseconds patience) const {
  const std::lock_guard lock(mutex_);
  return size_ > 0 && now > ring_[first_].expected_end + patience;
}

}  // namespace bouquet::tulip
