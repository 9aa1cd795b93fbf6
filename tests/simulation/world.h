#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bouquet::simulation {

/// What came of a world.
struct Outcome {
  std::vector<std::string> violations;  // none: every invariant held
  std::vector<std::string> last_lines;  // of the log, up to the first violation
  uint64_t log_hash = 0;
  int64_t num_lines = 0;
  int64_t num_requests = 0;
  int64_t num_ok = 0;  // requests answered with rows
};

/// Runs the world of a seed: clients, an encoder with its pool, replicas, a network and what goes
/// wrong with them, in one thread and on virtual time. All that happens follows from the seed.
/// `print`: its log to standard output. A CHECK that fails in it prints the end of the log first.
Outcome Simulate(uint64_t seed, bool print);

/// The command that runs one seed again and shows its log.
std::string ReplayCommand(uint64_t seed);

}  // namespace bouquet::simulation
