#pragma once

#include <atomic>

#include "base/clock.h"

namespace bouquet::testing {

/// Stands still until told to advance. Thread: any.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::nanoseconds(now_ns_.load())); }
  void Advance(std::chrono::nanoseconds step) { now_ns_ += step.count(); }

 private:
  std::atomic<int64_t> now_ns_ = 0;
};

}  // namespace bouquet::testing
