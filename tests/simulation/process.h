#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "tests/simulation/event_queue.h"

namespace bouquet::simulation {

/// A process as its events see it: what was planned in it does not happen once it has ended, and
/// waits while it is frozen (stopped, or without a processor).
class Process {
 public:
  explicit Process(EventQueue& events) : events_(events) {}
  ~Process() { *alive_ = false; }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  EventQueue& events() const { return events_; }

  void At(TimePoint at, std::function<void()> event) {
    events_.At(at, [this, alive = alive_, event = std::move(event)]() mutable {
      if (*alive) {
        RunOrWait(std::move(event));
      }
    });
  }
  void After(std::chrono::nanoseconds wait, std::function<void()> event) {
    At(events_.Now() + wait, std::move(event));
  }

  void FreezeUntil(TimePoint until) { frozen_until_ = std::max(frozen_until_, until); }
  TimePoint frozen_until() const { return frozen_until_; }

 private:
  void RunOrWait(std::function<void()> event) {
    if (events_.Now() < frozen_until_) {
      At(frozen_until_, std::move(event));
    } else {
      event();
    }
  }

  EventQueue& events_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  TimePoint frozen_until_ = TimePoint::min();
};

}  // namespace bouquet::simulation
