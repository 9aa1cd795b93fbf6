#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "tulip/step_cost.h"
#include "tulip/step_engine.h"

namespace bouquet::tulip {

struct WarmUpOptions {
  /// The next larger step is tried only if it is expected to end within this.
  std::chrono::milliseconds budget{80};
  int32_t sequence_tokens = 32;  // a short passage; the rest is what the engine's limits allow
};

/// Runs steps of 16, 64, 128, 256, … tokens and returns how long they took; the first one, which
/// pays for cold caches, runs twice if there is time. Ends at the engine's largest step, at the
/// budget, or where a larger step gains no throughput. Error: what a step failed with.
Result<std::vector<StepCost::Point>> MeasureStepCost(StepEngine& engine,
                                                     const WarmUpOptions& options,
                                                     const Clock& clock);

}  // namespace bouquet::tulip
