#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "bench/load/row_plan.h"
#include "bench/load/tally.h"

namespace bouquet::bench {

/// How a server came through a burst.
struct BurstOutcome {
  double base_p99_ms = 0;         // of what was due before the burst
  double goodput_per_second = 0;  // answered of what was due within it
  double refused_share = 0;       // of what was due within it
  /// From the burst's end until two windows in a row are calm: nothing refused, and p99 at most
  /// twice the base's. Windows in which nothing was due say nothing. In steps of Tally::kWindow.
  /// nullopt: not within the round.
  std::optional<double> recovery_seconds;
};

/// nullopt when nothing was answered before the burst.
std::optional<BurstOutcome> JudgeBurst(const std::vector<Window>& windows, const BurstPlan& burst);

}  // namespace bouquet::bench
