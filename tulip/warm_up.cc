#include "tulip/warm_up.h"

#include <algorithm>

namespace bouquet::tulip {
namespace {

void FillBatch(const rose::BatchLimits& limits, int32_t sequence_tokens, int32_t num_tokens,
               rose::Batch& batch) {
  batch.Clear();
  std::vector<int32_t> ids;
  while (batch.num_tokens() < num_tokens) {
    const int32_t length = std::min(sequence_tokens, num_tokens - batch.num_tokens());
    ids.clear();
    for (int32_t i = 0; i < length; ++i) {
      // Rows spread over the embedding table, as real text reads them.
      ids.push_back(
          static_cast<int32_t>((int64_t{i} * 7919 + batch.num_tokens()) % limits.vocabulary_rows));
    }
    batch.Add(ids, {}, 0, {});
  }
}

Result<double> TimeStepUs(StepEngine& engine, const rose::Batch& batch, const Clock& clock) {
  const TimePoint start = clock.Now();
  rose::LazyTensor result = engine.Step(batch);
  const Result<rose::StepResult> ended = result.Wait();
  if (!ended.ok()) {
    return ended.status();
  }
  return std::chrono::duration<double, std::micro>(clock.Now() - start).count();
}

}  // namespace

Result<std::vector<StepCost::Point>> MeasureStepCost(StepEngine& engine,
                                                     const WarmUpOptions& options,
                                                     const Clock& clock) {
  constexpr int32_t kFirstTokens = 16;
  constexpr double kWorthwhileGain = 1.02;
  const rose::BatchLimits& limits = engine.info().limits;
  const int32_t sequence_tokens = std::min(options.sequence_tokens, limits.max_positions);
  const double budget_us = std::chrono::duration<double, std::micro>(options.budget).count();

  std::vector<StepCost::Point> points;
  rose::Batch batch;
  const TimePoint start = clock.Now();
  double best_rate = 0;  // tokens per µs
  for (int32_t tokens = std::min(kFirstTokens, limits.max_tokens); tokens <= limits.max_tokens;
       tokens *= tokens == kFirstTokens ? 4 : 2) {
    if ((tokens + sequence_tokens - 1) / sequence_tokens > limits.max_sequences) {
      break;
    }
    const double spent_us = std::chrono::duration<double, std::micro>(clock.Now() - start).count();
    if (!points.empty() && spent_us + tokens / best_rate > budget_us) {
      break;
    }
    FillBatch(limits, sequence_tokens, tokens, batch);
    ASSIGN_OR_RETURN(double step_us, TimeStepUs(engine, batch, clock));
    if (points.empty() && 4 * step_us < budget_us) {
      ASSIGN_OR_RETURN(step_us, TimeStepUs(engine, batch, clock));
    }
    points.push_back({tokens, step_us});
    const double rate = tokens / std::max(step_us, 1.0);
    if (rate < best_rate * kWorthwhileGain) {
      break;
    }
    best_rate = rate;
  }
  return points;
}

}  // namespace bouquet::tulip
