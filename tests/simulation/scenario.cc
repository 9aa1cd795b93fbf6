#include "tests/simulation/scenario.h"

#include <algorithm>

namespace bouquet::simulation {
namespace {

void DrawReplicas(Random& random, Scenario& scenario) {
  scenario.num_machines = static_cast<int32_t>(random.Between(1, 4));
  scenario.step_tokens = static_cast<int32_t>(random.Skewed(32, 512));
  scenario.max_batch_sequences = static_cast<int32_t>(random.Skewed(2, 32));
  // Sometimes longer than a step's target: then an input runs alone.
  scenario.max_input_tokens = static_cast<int32_t>(random.Skewed(16, 256));
  scenario.steps_under_way = static_cast<int32_t>(random.Between(1, 2));
  scenario.max_queue = random.SkewedMs(20, 3000);
  scenario.bulk_age = random.SkewedMs(10, 2000);
}

/// So that all machines together are asked for `use` of what they can do.
void DrawSteps(Random& random, Scenario& scenario) {
  const double use = random.Chance(0.3) ? 2.5 * random.Unit() : 0.9 * random.Unit() + 0.05;
  const double step_ms = static_cast<double>(random.Skewed(1, 400));
  const double base_share = 0.8 * random.Unit();
  scenario.step_base = std::chrono::nanoseconds(static_cast<int64_t>(1e6 * step_ms * base_share));
  scenario.token_time = std::chrono::nanoseconds(
      static_cast<int64_t>(1e6 * step_ms * (1 - base_share) / scenario.step_tokens));
  scenario.step_spread = random.Chance(0.5) ? 1 + random.Unit() : 1 + 10 * random.Unit();
  scenario.measured = random.Chance(0.8);

  const double mean_tokens =
      0.3 * scenario.max_input_tokens * std::max(1.0, 0.3 * scenario.most_inputs);
  const double tokens_per_ms = scenario.num_machines * scenario.step_tokens / step_ms;
  const double requests_per_ms = use * tokens_per_ms / mean_tokens;
  const double pause_ms = scenario.num_clients / requests_per_ms;
  const double requests = static_cast<double>(random.Between(20, 200));
  scenario.longest_pause = std::chrono::microseconds(
      static_cast<int64_t>(std::clamp(2000 * pause_ms, 100.0, 2'000'000.0)));
  scenario.load_time = std::chrono::milliseconds(
      static_cast<int64_t>(std::clamp(requests / requests_per_ms, 1000.0, 20'000.0)));
}

void DrawLoad(Random& random, Scenario& scenario) {
  scenario.num_clients = static_cast<int32_t>(random.Skewed(1, 12));
  scenario.most_inputs = static_cast<int32_t>(random.Skewed(1, 40));
  scenario.bulk_share = random.Chance(0.3) ? 0 : random.Unit();
  scenario.deadline_share = random.Chance(0.2) ? 0 : random.Unit();
  scenario.longest_deadline = random.SkewedMs(20, 8000);
  scenario.hang_up_share = random.Chance(0.3) ? 0 : 0.3 * random.Unit();
  scenario.poison_share = random.Chance(0.6) ? 0 : 0.05 * random.Unit();
  scenario.not_finite_share = random.Chance(0.6) ? 0 : 0.05 * random.Unit();
}

}  // namespace

Scenario MakeScenario(Random random) {
  Scenario scenario;
  DrawReplicas(random, scenario);
  DrawLoad(random, scenario);
  DrawSteps(random, scenario);
  scenario.longest_lag = random.SkewedUs(1, 2000);
  scenario.longest_delay = random.SkewedUs(10, 50'000);
  scenario.has_faults = random.Chance(0.75);
  scenario.longest_peace = random.SkewedMs(500, 10'000);
  scenario.step_failure = scenario.has_faults && random.Chance(0.2) ? 0.3 * random.Unit() : 0;
  return scenario;
}

}  // namespace bouquet::simulation
