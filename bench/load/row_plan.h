#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/arrivals.h"

namespace bouquet::bench {

/// An overload in the middle of an open loop.
struct BurstPlan {
  double per_second = 0;
  std::chrono::nanoseconds start{0};  // from the beginning of the round
  std::chrono::nanoseconds duration{0};

  std::chrono::nanoseconds end() const { return start + duration; }
};

/// One line of the result: a load, repeated in rounds.
struct RowPlan {
  std::string name;                      // identifies the row when results are compared
  int32_t batch = 1;                     // inputs of a request
  int32_t tokens = 0;                    // of an input; 0: texts as they are
  int32_t processes = 1;                 // client processes
  int32_t in_flight = 1;                 // per process; of an open loop the most at once
  std::chrono::nanoseconds duration{0};  // of a round
  int64_t max_requests = 0;              // of a round and process; 0: no limit
  std::optional<ArrivalPlan> arrivals;   // makes it an open loop
  std::optional<BurstPlan> burst;        // among the arrivals
};

/// What all rows of a suite share.
struct RowDefaults {
  bool texts = false;     // inputs are texts of unknown length: one row in place of one per length
  int32_t processes = 0;  // 0: as the suite says
  std::chrono::nanoseconds duration{0};
  int64_t max_requests = 0;
};

// The suites. `lengths` are in tokens.
std::vector<RowPlan> LatencyRows(const std::vector<int32_t>& lengths, const RowDefaults& defaults);
std::vector<RowPlan> ScoringRows(const std::vector<int32_t>& batches, int32_t tokens,
                                 const RowDefaults& defaults);
/// Four processes unless the defaults say otherwise.
std::vector<RowPlan> ThroughputRows(const std::vector<int32_t>& lengths, int32_t batch,
                                    const RowDefaults& defaults);
std::vector<RowPlan> ConcurrencyRows(const std::vector<int32_t>& in_flight, int32_t tokens,
                                     const RowDefaults& defaults);

struct OpenLoad {
  double per_second = 0;
  ArrivalPlan::Spacing spacing = ArrivalPlan::Spacing::kPoisson;
  uint64_t seed = 1;
  double burst_per_second = 0;  // 0: no burst
  std::chrono::nanoseconds burst_duration{0};
  int32_t batch = 1;
  int32_t tokens = 0;
  int32_t max_in_flight = 1;  // per process
};
/// The base rate for the defaults' duration; with a burst: base, burst, base.
RowPlan OpenLoadRow(const OpenLoad& load, const RowDefaults& defaults);

}  // namespace bouquet::bench
