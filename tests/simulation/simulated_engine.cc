#include "tests/simulation/simulated_engine.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/check.h"
#include "tests/simulation/input_marks.h"

namespace bouquet::simulation {

SimulatedEngine::SimulatedEngine(const Scenario& scenario, const std::string& fingerprint,
                                 Process& process, ServerChecker& checker, Random random,
                                 std::function<void()> on_step_end)
    : scenario_(scenario),
      process_(process),
      checker_(checker),
      random_(random),
      on_step_end_(std::move(on_step_end)),
      slots_(static_cast<size_t>(scenario.steps_under_way)) {
  info_.device = "simulated";
  info_.dtype = "float32";
  info_.numerics_fingerprint = fingerprint;
  info_.steps_under_way = scenario.steps_under_way;
  info_.limits = {.vocabulary_rows = kVocabularyRows,
                  .token_types = 1,
                  .max_positions = scenario.max_input_tokens,
                  .max_tokens = std::max(scenario.step_tokens, scenario.max_input_tokens),
                  .max_sequences = scenario.max_batch_sequences,
                  .width = Scenario::kWidth,
                  .max_rows = scenario.max_batch_sequences};
}

rose::LazyTensor SimulatedEngine::Step(const rose::Batch& batch) {
  CHECK(rose::ValidateBatch(batch, info_.limits).ok());
  Slot& slot = slots_[static_cast<size_t>(num_steps_) % slots_.size()];
  CHECK(!slot.busy);  // no more results alive than allowed
  slot.busy = true;
  slot.ready = false;
  slot.step_number = num_steps_++;
  Compute(batch, slot);
  checker_.OnStep(slot.step_number, batch);

  const auto alone = static_cast<double>(StepTime(scenario_, batch.num_tokens()).count());
  const double times = 1 + (scenario_.step_spread - 1) * random_.Unit() * random_.Unit();
  const auto takes = std::chrono::nanoseconds(static_cast<int64_t>(alone * times)) + stall_;
  stall_ = stall_.zero();
  previous_end_ = std::max(previous_end_, process_.events().Now()) + takes;
  process_.At(previous_end_, [this, &slot] {
    slot.ready = true;
    checker_.OnStepEnd(slot.step_number, slot.error.ok(), slot.statuses);
    on_step_end_();
  });
  return rose::LazyTensor(&slot);
}

Result<rose::StepResult> SimulatedEngine::Slot::Wait() {
  CHECK(ready);  // a turn never waits
  busy = false;
  if (!error.ok()) {
    return error;
  }
  return rose::StepResult{std::span(&block, 1), statuses};
}

void SimulatedEngine::Compute(const rose::Batch& batch, Slot& slot) {
  slot.error = {};
  slot.rows.assign(static_cast<size_t>(batch.num_sequences()) * Scenario::kWidth, 0);
  slot.offsets.assign(1, 0);
  slot.statuses.clear();
  for (size_t i = 0; i < static_cast<size_t>(batch.num_sequences()); ++i) {
    const auto begin = static_cast<size_t>(batch.sequence_offsets[i]);
    const auto end = static_cast<size_t>(batch.sequence_offsets[i + 1]);
    const std::span<const int32_t> ids = std::span(batch.token_ids).subspan(begin, end - begin);
    const uint32_t asked = batch.outputs[i].dimensions;
    std::vector<float> row = RowOf(ids, asked == 0 ? Scenario::kWidth : asked);
    slot.statuses.push_back(rose::RowStatus::kOk);
    if (ids[kKindMark] == kNotFinite) {
      row[0] = std::numeric_limits<float>::quiet_NaN();
      slot.statuses.back() = rose::RowStatus::kNotFinite;
      if (i > 0) {  // some attention kernels spoil the sequence before
        slot.statuses[i - 1] = rose::RowStatus::kNotFinite;
      }
    }
    if (ids[kKindMark] == kPoisoned) {
      slot.error = Internal("a poisoned input");
    }
    std::ranges::copy(row, slot.rows.begin() + static_cast<ptrdiff_t>(i * Scenario::kWidth));
    slot.offsets.push_back(static_cast<uint32_t>(i) + 1);
  }
  if (scenario_.step_failure > 0 && random_.Chance(scenario_.step_failure)) {
    slot.error = ResourceExhausted("out of memory");
  }
  slot.block = {model::Head::kDense, model::RowDtype::kFloat32, Scenario::kWidth, slot.offsets,
                std::as_bytes(std::span<const float>(slot.rows))};
}

}  // namespace bouquet::simulation
