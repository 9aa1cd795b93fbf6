#pragma once

#include <chrono>

namespace bouquet {

using TimePoint = std::chrono::steady_clock::time_point;
using Microseconds = std::chrono::microseconds;

/// Time as a dependency, so that policies are tested with a fake one. Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
};

/// The moment after which an answer is of no use. One value travels with a request from the edge to
/// the queue.
struct Deadline {
  TimePoint at = TimePoint::max();

  static Deadline None() { return {}; }
  static Deadline After(TimePoint now, std::chrono::nanoseconds wait) { return {now + wait}; }
  bool HasPassed(TimePoint now) const { return now >= at; }
};

}  // namespace bouquet
