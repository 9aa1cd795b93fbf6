#include "bench/load/summary.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "bench/load/recovery.h"

namespace bouquet::bench {
namespace {

double Milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class MetricTable {
 public:
  void Add(const std::string& name, double value) {
    for (Metric& metric : metrics_) {
      if (metric.name == name) {
        metric.rounds.push_back(value);
        return;
      }
    }
    metrics_.push_back({name, {value}, {}});
  }
  std::vector<Metric> Finish() && {
    for (Metric& metric : metrics_) {
      metric.spread = SpreadOf(metric.rounds);
    }
    return std::move(metrics_);
  }

 private:
  std::vector<Metric> metrics_;
};

void AddLatencies(const Histogram& latency, MetricTable& table) {
  table.Add("p50_ms", Milliseconds(latency.Percentile(50)));
  table.Add("p90_ms", Milliseconds(latency.Percentile(90)));
  table.Add("p99_ms", Milliseconds(latency.Percentile(99)));
  table.Add("p99_9_ms", Milliseconds(latency.Percentile(99.9)));
  table.Add("max_ms", Milliseconds(latency.max()));
  table.Add("mean_ms", Milliseconds(latency.mean()));
}

void AddRates(const Tally& tally, MetricTable& table) {
  const double seconds = tally.SecondsElapsed();
  if (seconds <= 0) {
    return;
  }
  table.Add("requests_per_s", static_cast<double>(tally.num_ok()) / seconds);
  table.Add("embeddings_per_s", static_cast<double>(tally.num_inputs) / seconds);
  table.Add("tokens_per_s", static_cast<double>(tally.num_tokens) / seconds);
}

void AddBurst(const BurstPlan& burst, const Tally& tally, RowSummary& row, MetricTable& table) {
  const std::optional<BurstOutcome> outcome = JudgeBurst(tally.windows, burst);
  if (!outcome) {
    return;
  }
  table.Add("base_p99_ms", outcome->base_p99_ms);
  table.Add("burst_goodput_per_s", outcome->goodput_per_second);
  table.Add("burst_refused_share", outcome->refused_share);
  if (outcome->recovery_seconds) {
    table.Add("recovery_s", *outcome->recovery_seconds);
  } else {
    ++row.rounds_not_recovered;
  }
}

}  // namespace

const Metric* RowSummary::Find(std::string_view name) const {
  for (const Metric& metric : metrics) {
    if (metric.name == name) {
      return &metric;
    }
  }
  return nullptr;
}

RowSummary Summarise(const RowResult& result) {
  RowSummary row;
  row.plan = result.plan;
  row.complete = result.complete;
  Tally total;
  MetricTable table;
  for (const Tally& round : result.rounds) {
    total.Merge(round);
    AddRates(round, table);
    if (round.num_ok() > 0) {
      AddLatencies(round.latency, table);
    }
    if (result.plan.burst && round.complete) {
      AddBurst(*result.plan.burst, round, row, table);
    }
  }
  row.metrics = std::move(table).Finish();
  row.num_ok = total.num_ok();
  row.failed = std::move(total.failed);
  row.num_reconnected = total.num_reconnected;
  row.latency = std::move(total.latency);
  row.lag = std::move(total.lag);
  row.first_error = std::move(total.first_error);
  if (!result.rounds.empty()) {
    for (const Window& window : result.rounds.back().windows) {
      row.windows.push_back({window.ok, window.failed, Milliseconds(window.latency.Percentile(50)),
                             Milliseconds(window.latency.Percentile(99))});
    }
  }
  return row;
}

std::string ShowNumber(double value) {
  const double size = std::abs(value);
  if (size == 0) {
    return "0";
  }
  if (size >= 100) {
    return fmt::format("{:.0f}", value);
  }
  return size >= 10 ? fmt::format("{:.1f}", value)
                    : fmt::format("{:.{}f}", value,
                                  size >= 1      ? 2
                                  : size >= 0.01 ? 3
                                                 : 6);
}

}  // namespace bouquet::bench
