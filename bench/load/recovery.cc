#include "bench/load/recovery.h"

#include <algorithm>

namespace bouquet::bench {
namespace {

using std::chrono::nanoseconds;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int64_t kCalmFactor = 2;

bool IsCalm(const Window& window, nanoseconds base_p99) {
  return window.failed == 0 && window.latency.Percentile(99) <= kCalmFactor * base_p99;
}

std::optional<double> RecoverySeconds(const std::vector<Window>& windows, const BurstPlan& burst,
                                      nanoseconds base_p99) {
  const nanoseconds width = Tally::kWindow;
  std::optional<double> calm_since;
  for (auto i = static_cast<size_t>((burst.end() + width - nanoseconds(1)) / width);
       i < windows.size(); ++i) {
    if (windows[i].ok + windows[i].failed == 0) {
      continue;
    }
    if (!IsCalm(windows[i], base_p99)) {
      calm_since.reset();
    } else if (calm_since) {
      return calm_since;
    } else {
      calm_since =
          std::chrono::duration<double>(width * static_cast<int64_t>(i) - burst.end()).count();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<BurstOutcome> JudgeBurst(const std::vector<Window>& windows, const BurstPlan& burst) {
  const nanoseconds width = Tally::kWindow;
  Histogram base(Window::kPrecisionBits);
  int64_t ok = 0;
  int64_t failed = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    const nanoseconds start = width * static_cast<int64_t>(i);
    if (start + width <= burst.start) {
      base.Merge(windows[i].latency);
    } else if (start >= burst.start && start < burst.end()) {
      ok += windows[i].ok;
      failed += windows[i].failed;
    }
  }
  if (base.empty()) {
    return std::nullopt;
  }
  const nanoseconds base_p99 = base.Percentile(99);
  BurstOutcome outcome;
  outcome.base_p99_ms = Milliseconds(base_p99).count();
  outcome.goodput_per_second =
      static_cast<double>(ok) / std::chrono::duration<double>(burst.duration).count();
  outcome.refused_share =
      static_cast<double>(failed) / static_cast<double>(std::max<int64_t>(ok + failed, 1));
  outcome.recovery_seconds = RecoverySeconds(windows, burst, base_p99);
  return outcome;
}

}  // namespace bouquet::bench
