#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bouquet::bench {

/// Where the load generator ran.
struct MachineFacts {
  std::string cpu;
  int32_t cores = 0;               // that this process may use
  std::vector<std::string> flags;  // instruction sets that matter to a model
  double memory_gib = 0;
  double load_average = 0;  // over a minute, when it was asked
  std::string kernel;
};

/// What times were taken with.
struct ClockFacts {
  std::string source;         // name of the monotonic clock
  int64_t resolution_ns = 0;  // as the system says
  int64_t read_ns = 0;        // what reading it costs, the least of many
  double cpu_mhz = 0;         // of the first core, when it was asked; 0: not known
};

MachineFacts DescribeMachine();
ClockFacts DescribeClock();

}  // namespace bouquet::bench
