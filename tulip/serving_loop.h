#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "tulip/admission.h"
#include "tulip/core_metrics.h"
#include "tulip/in_flight.h"
#include "tulip/scheduler.h"
#include "tulip/step_cost.h"
#include "tulip/step_engine.h"
#include "tulip/step_retry.h"

namespace bouquet::tulip {

/// The one thread that owns scheduler and engine: room first, then the right moment, so that each
/// batch is formed as late, and as full, as possible.
class ServingLoop {
 public:
  /// When the next turn has something to do.
  enum class NextTurn : uint8_t {
    kNow,
    kAtLaunchMoment,  // InFlight::LaunchMoment
    kOnArrival,       // or Close, Abandon or Wake of the admission
    kWhenNoneUnderWay,
    kNever,  // everything that was admitted has been answered, and nothing can follow
  };

  /// All references must outlive the loop.
  ServingLoop(StepEngine& engine, Admission& admission, InFlight& in_flight, CoreMetrics& metrics,
              const Clock& clock, const SchedulerOptions& options, const StepCost& cost);

  /// Returns when admission is closed and all that was admitted has been answered.
  void Run();
  /// What Run does between two waits: at most one step is launched. Never waits.
  NextTurn Turn();

 private:
  bool LearnFromSteps();
  bool FormBatch();
  void Launch();
  void CountLaunch();
  void AnswerDropped();
  void AbandonWaiting();

  StepEngine& engine_;
  Admission& admission_;
  InFlight& in_flight_;
  CoreMetrics& metrics_;
  const Clock& clock_;
  const int32_t step_tokens_;

  Scheduler scheduler_;
  StepRetry retry_;
  StepCost cost_;

  GraphUse graph_use_;  // before the step that is launched next

  // Kept from step to step for their memory.
  ScheduledBatch batch_;
  std::vector<StepOutcome> outcomes_;
};

}  // namespace bouquet::tulip
