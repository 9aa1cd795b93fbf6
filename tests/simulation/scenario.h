#pragma once

#include <chrono>
#include <cstdint>

#include "tests/simulation/random.h"

namespace bouquet::simulation {

/// What kind of world a seed makes: everything that is drawn once. What happens in it is drawn as
/// it goes, from forks of the same seed.
struct Scenario {
  // Replicas.
  int32_t num_machines = 1;
  int32_t step_tokens = 256;
  int32_t max_batch_sequences = 16;
  int32_t max_input_tokens = 128;
  int32_t steps_under_way = 1;
  std::chrono::milliseconds max_queue{1000};
  std::chrono::milliseconds bulk_age{500};

  // What a step takes: base + tokens, up to `step_spread` times as long.
  std::chrono::nanoseconds step_base{0};
  std::chrono::nanoseconds token_time{0};
  double step_spread = 1;
  bool measured = true;  // a server knows that curve when it starts

  // Threads and messages take so long, each time anew.
  std::chrono::microseconds longest_lag{100};
  std::chrono::microseconds longest_delay{1000};

  // Load.
  int32_t num_clients = 4;
  std::chrono::milliseconds load_time{5000};
  std::chrono::microseconds longest_pause{1000};  // of a client between two requests
  int32_t most_inputs = 8;
  double bulk_share = 0.3;
  double deadline_share = 0.7;
  std::chrono::milliseconds longest_deadline{2000};
  double hang_up_share = 0.05;
  double poison_share = 0;      // inputs that make their step fail
  double not_finite_share = 0;  // inputs whose row is not finite

  // Faults of machines and network, during the load. Without them nothing may be unavailable.
  bool has_faults = true;
  std::chrono::milliseconds longest_peace{3000};  // between two faults of one machine
  double step_failure = 0;                        // a step fails for no reason of its inputs

  static constexpr int32_t kWidth = 4;
};

Scenario MakeScenario(Random random);

}  // namespace bouquet::simulation
