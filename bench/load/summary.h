#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/histogram.h"
#include "bench/load/measure.h"
#include "bench/load/spread.h"

namespace bouquet::bench {

/// A figure of a row: taken in each round, and its spread over them.
struct Metric {
  std::string name;  // "p99_ms", "embeddings_per_s"
  std::vector<double> rounds;
  Spread spread;
};

/// One stretch of an open loop, for plots over time.
struct WindowSummary {
  int64_t ok = 0;
  int64_t failed = 0;
  double p50_ms = 0;
  double p99_ms = 0;
};

/// What a report says about a row.
struct RowSummary {
  RowPlan plan;
  bool complete = true;
  int64_t num_ok = 0;  // of all rounds, as the next four
  std::map<std::string, OutcomeTally> failed;
  int64_t num_reconnected = 0;
  Histogram latency;
  Histogram lag;
  std::string first_error;
  std::vector<Metric> metrics;
  std::vector<WindowSummary> windows;  // of the last round
  int64_t rounds_not_recovered = 0;    // of a burst

  const Metric* Find(std::string_view name) const;
};

/// Latencies are left out where nothing was answered: a metric is there or it was measured.
RowSummary Summarise(const RowResult& result);

/// "0.123" … "12.3" … "1234": three digits that matter.
std::string ShowNumber(double value);

}  // namespace bouquet::bench
