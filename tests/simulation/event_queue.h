#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "ivy/dispatch/timers.h"

namespace bouquet::simulation {

/// What will happen, in order of time and then of being planned; and the clock, which moves only
/// from one event to the next.
class EventQueue final : public Clock {
 public:
  TimePoint Now() const override { return now_; }

  /// Not before now.
  void At(TimePoint at, std::function<void()> event);
  void After(std::chrono::nanoseconds wait, std::function<void()> event) {
    At(now_ + wait, std::move(event));
  }

  /// Runs the next event. False when there is none until `end`: then that is the time.
  bool RunNext(TimePoint end);

 private:
  struct Event {
    TimePoint at;
    uint64_t number = 0;
    std::function<void()> run;
  };
  static bool IsLater(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.number > b.number;
  }

  TimePoint now_{std::chrono::seconds(1000)};
  uint64_t next_number_ = 0;
  std::vector<Event> heap_;
};

/// Ivy's waits end by events.
class VirtualTimers final : public ivy::Timers {
 public:
  explicit VirtualTimers(EventQueue& events) : events_(events) {}
  void ResumeAt(TimePoint at, std::shared_ptr<ivy::Resumption> waiting,
                boost::asio::steady_timer& timer) const override;

 private:
  EventQueue& events_;
};

}  // namespace bouquet::simulation
