#pragma once

#include "base/clock.h"
#include "rose/step_result.h"
#include "tulip/admission.h"
#include "tulip/core_metrics.h"
#include "tulip/in_flight.h"

namespace bouquet::tulip {

/// The second thread, and the only place that waits for the device: takes the oldest step, cuts
/// each sequence's row out of the result, and answers. A step that failed as a whole goes back to
/// the serving loop, which tries its halves. So do the sequences whose rows are not finite if there
/// are several: an attention kernel may multiply a neighbour's NaN by zero. A single one is to
/// blame itself, and only it fails.
class Completer {
 public:
  /// All references must outlive the completer.
  Completer(InFlight& in_flight, Admission& admission, CoreMetrics& metrics, const Clock& clock)
      : in_flight_(in_flight), admission_(admission), metrics_(metrics), clock_(clock) {}

  /// Returns when `in_flight` is closed and empty.
  void Run();
  /// What Run does in one round, without waiting: delivers the oldest step if it has ended. False
  /// when there was nothing to deliver.
  bool Turn();

 private:
  void Finish(StepInFlight& step);
  void Deliver(const rose::StepResult& result, StepInFlight& step, TimePoint began, TimePoint ended,
               StepOutcome& step_outcome);

  InFlight& in_flight_;
  Admission& admission_;
  CoreMetrics& metrics_;
  const Clock& clock_;
  TimePoint previous_end_ = TimePoint::min();
};

}  // namespace bouquet::tulip
