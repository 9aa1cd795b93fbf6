// Random Add, Cancel, NextBatch and the passing of time against the scheduler's invariants
// (scheduler_checker.h). Two bytes are one action. Does not cover threads; tokens per sequence stay
// under 1,000 and waiting sequences under 256, so that one input runs in milliseconds.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tulip/scheduler_checker.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using bouquet::Deadline;
  using bouquet::TimePoint;
  using bouquet::model::TrafficClass;
  using std::chrono::milliseconds;
  if (size < 2) {
    return 0;
  }
  bouquet::tulip::SchedulerOptions options;
  options.step_tokens = 1 + data[0] * 4;
  options.max_batch_sequences = 1 + data[1] % 16;
  options.bulk_age = milliseconds(20);
  bouquet::tulip::SchedulerChecker checker(options);
  TimePoint now{};
  constexpr size_t kMaxActions = 512;
  for (size_t i = 2; i + 1 < size && i < 2 * kMaxActions; i += 2) {
    const uint8_t action = data[i];
    const uint8_t value = data[i + 1];
    switch (action % 8) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const bool has_deadline = (action & 16) != 0;
        checker.Add(
            now, (action & 8) != 0 ? TrafficClass::kBulk : TrafficClass::kInteractive,
            1 + value * ((action & 32) != 0 ? 3 : 1),
            has_deadline ? Deadline::After(now, milliseconds(value % 64)) : Deadline::None());
        break;
      }
      case 4: checker.Cancel(value); break;
      case 5: now += milliseconds(value % 32); break;
      default: checker.Step(now);
    }
  }
  for (int steps = 0; !checker.empty(); ++steps) {  // whatever waits is served in the end
    CHECK_LE(steps, 1024);
    checker.Step(now);
  }
  return 0;
}
