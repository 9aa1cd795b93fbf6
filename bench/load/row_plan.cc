#include "bench/load/row_plan.h"

#include <fmt/format.h>

namespace bouquet::bench {
namespace {

RowPlan BasicRow(const RowDefaults& defaults, int32_t batch, int32_t tokens) {
  RowPlan row;
  row.batch = batch;
  row.tokens = defaults.texts ? 0 : tokens;
  row.processes = defaults.processes > 0 ? defaults.processes : 1;
  row.duration = defaults.duration;
  row.max_requests = defaults.max_requests;
  row.name = defaults.texts ? fmt::format("{} text{}", batch, batch == 1 ? "" : "s")
                            : fmt::format("{} x {} tokens", batch, tokens);
  return row;
}

void NameProcesses(RowPlan& row) {
  if (row.processes > 1) {
    row.name += fmt::format(", {} clients", row.processes);
  }
}

constexpr int32_t kThroughputProcesses = 4;

}  // namespace

std::vector<RowPlan> LatencyRows(const std::vector<int32_t>& lengths, const RowDefaults& defaults) {
  std::vector<RowPlan> rows;
  for (const int32_t tokens : lengths) {
    rows.push_back(BasicRow(defaults, 1, tokens));
    NameProcesses(rows.back());
    if (defaults.texts) {
      break;
    }
  }
  return rows;
}

std::vector<RowPlan> ScoringRows(const std::vector<int32_t>& batches, int32_t tokens,
                                 const RowDefaults& defaults) {
  std::vector<RowPlan> rows;
  for (const int32_t batch : batches) {
    rows.push_back(BasicRow(defaults, batch, tokens));
    NameProcesses(rows.back());
  }
  return rows;
}

std::vector<RowPlan> ThroughputRows(const std::vector<int32_t>& lengths, int32_t batch,
                                    const RowDefaults& defaults) {
  std::vector<RowPlan> rows;
  for (const int32_t tokens : lengths) {
    RowPlan& row = rows.emplace_back(BasicRow(defaults, batch, tokens));
    row.processes = defaults.processes > 0 ? defaults.processes : kThroughputProcesses;
    NameProcesses(row);
    if (defaults.texts) {
      break;
    }
  }
  return rows;
}

std::vector<RowPlan> ConcurrencyRows(const std::vector<int32_t>& in_flight, int32_t tokens,
                                     const RowDefaults& defaults) {
  std::vector<RowPlan> rows;
  for (const int32_t count : in_flight) {
    RowPlan& row = rows.emplace_back(BasicRow(defaults, 1, tokens));
    row.in_flight = count;
    row.name += fmt::format(", {} in flight", count);
    NameProcesses(row);
  }
  return rows;
}

RowPlan OpenLoadRow(const OpenLoad& load, const RowDefaults& defaults) {
  RowPlan row = BasicRow(defaults, load.batch, load.tokens);
  row.in_flight = load.max_in_flight;
  row.name += fmt::format(", {}/s", load.per_second);
  ArrivalPlan arrivals{.spacing = load.spacing, .seed = load.seed, .phases = {}};
  arrivals.phases.push_back({load.per_second, defaults.duration});
  if (load.burst_per_second > 0) {
    arrivals.phases.push_back({load.burst_per_second, load.burst_duration});
    arrivals.phases.push_back({load.per_second, defaults.duration});
    row.burst = BurstPlan{load.burst_per_second, defaults.duration, load.burst_duration};
    row.name += fmt::format(", burst {}/s for {} s", load.burst_per_second,
                            std::chrono::duration<double>(load.burst_duration).count());
  }
  row.duration = arrivals.TotalDuration();
  row.arrivals = std::move(arrivals);
  NameProcesses(row);
  return row;
}

}  // namespace bouquet::bench
