#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rose/batch.h"
#include "rose/engine.h"
#include "rose/lazy_tensor.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/server_checker.h"
#include "tulip/step_engine.h"

namespace bouquet::simulation {

/// An engine whose steps take time but compute nothing but marks (input_marks.h). Steps run one
/// after the other; a step with a poisoned input fails as a whole, and others for no reason.
class SimulatedEngine final : public tulip::StepEngine {
 public:
  /// `on_step_end` is called when the oldest step has ended. Everything must outlive the engine.
  SimulatedEngine(const Scenario& scenario, const std::string& fingerprint, Process& process,
                  ServerChecker& checker, Random random, std::function<void()> on_step_end);

  rose::LazyTensor Step(const rose::Batch& batch) override;
  const rose::EngineInfo& info() const override { return info_; }

  /// The next step takes that much longer.
  void StallNextStep(std::chrono::milliseconds stall) { stall_ = stall; }

  static std::chrono::nanoseconds StepTime(const Scenario& scenario, int32_t num_tokens) {
    return scenario.step_base + num_tokens * scenario.token_time;
  }

 private:
  struct Slot final : rose::LazyTensor::Source {
    bool busy = false;
    bool ready = false;
    int64_t step_number = 0;
    Status error;
    std::vector<float> rows;
    std::vector<uint32_t> offsets;
    std::vector<rose::RowStatus> statuses;
    model::RowBlock block;

    bool IsReady() const override { return ready; }
    Result<rose::StepResult> Wait() override;
  };

  void Compute(const rose::Batch& batch, Slot& slot);

  const Scenario& scenario_;
  Process& process_;
  ServerChecker& checker_;
  Random random_;
  const std::function<void()> on_step_end_;
  rose::EngineInfo info_;
  std::vector<Slot> slots_;
  int64_t num_steps_ = 0;
  TimePoint previous_end_ = TimePoint::min();
  std::chrono::milliseconds stall_{0};
};

}  // namespace bouquet::simulation
