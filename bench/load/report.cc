#include "bench/load/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/json_writer.h"
#include "bench/load/histogram_json.h"

namespace bouquet::bench {
namespace {

constexpr const char* kFormat = "bouquet-bench-1";

double Milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void WriteMachine(const MachineFacts& machine, JsonWriter& json) {
  json.BeginObject().Field("cpu", machine.cpu).Field("cores", machine.cores);
  json.Key("flags").BeginArray();
  for (const std::string& flag : machine.flags) {
    json.Value(flag);
  }
  json.EndArray().Field("memory_gib", machine.memory_gib);
  json.Field("load_average", machine.load_average).Field("kernel", machine.kernel).EndObject();
}

void WriteClock(const ClockFacts& clock, JsonWriter& json) {
  json.BeginObject().Field("source", clock.source).Field("resolution_ns", clock.resolution_ns);
  json.Field("read_ns", clock.read_ns).Key("cpu_mhz");
  if (clock.cpu_mhz > 0) {
    json.Value(clock.cpu_mhz);
  } else {
    json.Null();
  }
  json.EndObject();
}

void WriteServer(const Report& report, JsonWriter& json) {
  json.BeginObject().Field("url", report.url).Field("protocol", report.protocol);
  json.Field("model", report.server.model).Field("version", report.server.version).Key("info");
  json.Raw(report.server.info.empty() ? "null" : report.server.info).EndObject();
}

void WriteCheck(const std::optional<CheckOutcome>& check, JsonWriter& json) {
  if (!check) {
    json.Null();
    return;
  }
  json.BeginObject().Field("reference", check->reference).Field("inputs", check->num_inputs);
  json.Field("worst", check->worst).Field("worst_input", check->worst_input);
  json.Field("tolerance", check->tolerance).Field("passed", check->passed()).EndObject();
}

void WriteLatency(const Histogram& latency, JsonWriter& json) {
  json.BeginObject();
  json.Field("min", Milliseconds(latency.min())).Field("mean", Milliseconds(latency.mean()));
  for (const auto& [name, percent] :
       {std::pair("p50", 50.0), std::pair("p75", 75.0), std::pair("p90", 90.0),
        std::pair("p95", 95.0), std::pair("p99", 99.0), std::pair("p99_9", 99.9),
        std::pair("p99_99", 99.99)}) {
    json.Field(name, Milliseconds(latency.Percentile(percent)));
  }
  json.Field("max", Milliseconds(latency.max())).EndObject();
}

void WriteFailures(const RowSummary& row, JsonWriter& json) {
  json.Key("failed").BeginObject();
  for (const auto& [name, outcome] : row.failed) {
    json.Key(name).BeginObject().Field("count", outcome.count);
    json.Field("with_retry_after", outcome.with_retry_after).Key("latency_ms");
    WriteLatency(outcome.latency, json);
    json.EndObject();
  }
  json.EndObject();
}

void WriteMetrics(const RowSummary& row, JsonWriter& json) {
  json.Key("metrics").BeginObject();
  for (const Metric& metric : row.metrics) {
    json.Key(metric.name).BeginObject().Field("median", metric.spread.median);
    json.Field("min", metric.spread.min).Field("max", metric.spread.max);
    json.Key("rounds").BeginArray();
    for (const double value : metric.rounds) {
      json.Value(value);
    }
    json.EndArray().EndObject();
  }
  json.EndObject();
}

void WriteWindows(const RowSummary& row, JsonWriter& json) {
  json.Key("windows").BeginArray();
  for (const WindowSummary& window : row.windows) {
    json.BeginObject().Field("ok", window.ok).Field("failed", window.failed);
    json.Field("p50_ms", window.p50_ms).Field("p99_ms", window.p99_ms).EndObject();
  }
  json.EndArray();
}

void WriteRow(const RowSummary& row, JsonWriter& json) {
  const RowPlan& plan = row.plan;
  json.BeginObject().Field("name", plan.name).Field("complete", row.complete);
  json.Field("batch", plan.batch).Field("tokens", plan.tokens).Field("processes", plan.processes);
  json.Field("in_flight", plan.in_flight).Field("loop", plan.arrivals ? "open" : "closed");
  json.Field("round_seconds", std::chrono::duration<double>(plan.duration).count());
  json.Field("ok", row.num_ok);
  WriteFailures(row, json);
  json.Field("first_error", row.first_error).Field("reconnected", row.num_reconnected);
  WriteMetrics(row, json);
  if (row.num_ok > 0) {
    json.Key("latency_ms");
    WriteLatency(row.latency, json);
    json.Key("histogram");
    AppendHistogram(row.latency, json);
  }
  if (plan.arrivals) {
    json.Key("send_lag_ms");
    WriteLatency(row.lag, json);
    WriteWindows(row, json);
  }
  if (plan.burst) {
    json.Field("rounds_not_recovered", row.rounds_not_recovered);
  }
  json.EndObject();
}

std::string Cell(const RowSummary& row, std::string_view name) {
  const Metric* metric = row.Find(name);
  return metric == nullptr ? "-" : ShowNumber(metric->spread.median);
}

std::string SpreadCell(const RowSummary& row, std::string_view name) {
  const Metric* metric = row.Find(name);
  return metric == nullptr
             ? "-"
             : fmt::format("{} ({}..{})", ShowNumber(metric->spread.median),
                           ShowNumber(metric->spread.min), ShowNumber(metric->spread.max));
}

void AppendFailures(const RowSummary& row, std::string& out) {
  for (const auto& [name, outcome] : row.failed) {
    fmt::format_to(std::back_inserter(out), "    {}: {} requests, p50 {} ms, p99 {} ms", name,
                   outcome.count, ShowNumber(Milliseconds(outcome.latency.Percentile(50))),
                   ShowNumber(Milliseconds(outcome.latency.Percentile(99))));
    if (outcome.with_retry_after > 0) {
      fmt::format_to(std::back_inserter(out), ", {} with Retry-After", outcome.with_retry_after);
    }
    out += '\n';
  }
  if (!row.first_error.empty()) {
    fmt::format_to(std::back_inserter(out), "    first error: {}\n", row.first_error);
  }
}

void AppendOpenLoop(const RowSummary& row, std::string& out) {
  if (row.plan.arrivals) {
    fmt::format_to(std::back_inserter(out), "    sent late by p50 {} ms, p99 {} ms\n",
                   ShowNumber(Milliseconds(row.lag.Percentile(50))),
                   ShowNumber(Milliseconds(row.lag.Percentile(99))));
  }
  if (!row.plan.burst) {
    return;
  }
  fmt::format_to(std::back_inserter(out), "    burst: goodput {}/s, refused {}, recovery {} s{}\n",
                 SpreadCell(row, "burst_goodput_per_s"), SpreadCell(row, "burst_refused_share"),
                 SpreadCell(row, "recovery_s"),
                 row.rounds_not_recovered > 0
                     ? fmt::format("; {} rounds did not recover", row.rounds_not_recovered)
                     : "");
}

}  // namespace

bool Report::complete() const {
  return std::all_of(rows.begin(), rows.end(), [](const RowSummary& row) { return row.complete; });
}

std::string WriteJson(const Report& report) {
  JsonWriter json;
  json.BeginObject().Field("format", kFormat).Field("suite", report.suite);
  json.Field("date", report.date).Field("version", report.version).Field("commit", report.commit);
  json.Field("command", report.command).Field("complete", report.complete());
  json.Key("server");
  WriteServer(report, json);
  json.Key("machine");
  WriteMachine(report.machine, json);
  json.Key("clock");
  WriteClock(report.clock, json);
  json.Key("check");
  WriteCheck(report.check, json);
  json.Field("inputs", report.inputs).Field("rounds", report.rounds);
  json.Field("warm_up_seconds", report.warm_up_seconds).Key("rows").BeginArray();
  for (const RowSummary& row : report.rows) {
    WriteRow(row, json);
  }
  json.EndArray().EndObject();
  return std::move(json).Take() + "\n";
}

std::string WriteTable(const Report& report) {
  size_t width = 8;
  for (const RowSummary& row : report.rows) {
    width = std::max(width, row.plan.name.size());
  }
  std::string out = fmt::format("{:<{}}  {:>22}  {:>8}  {:>22}  {:>8}  {:>8}  {:>22}  {:>8}\n",
                                "ms", width, "p50 (least..most)", "p90", "p99 (least..most)",
                                "p99.9", "max", "inputs/s (least..most)", "requests");
  for (const RowSummary& row : report.rows) {
    fmt::format_to(std::back_inserter(out),
                   "{:<{}}  {:>22}  {:>8}  {:>22}  {:>8}  {:>8}  {:>22}  {:>8}{}\n", row.plan.name,
                   width, SpreadCell(row, "p50_ms"), Cell(row, "p90_ms"), SpreadCell(row, "p99_ms"),
                   Cell(row, "p99_9_ms"), Cell(row, "max_ms"), SpreadCell(row, "embeddings_per_s"),
                   row.num_ok, row.complete ? "" : "  (incomplete)");
    AppendFailures(row, out);
    AppendOpenLoop(row, out);
  }
  return out;
}

Status WriteFile(const std::string& path, std::string_view content) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0) {
    const Status status(StatusCode::kPermissionDenied,
                        fmt::format("cannot write {}: {}", path, std::strerror(errno)));
    std::remove(part.c_str());
    return status;
  }
  return {};
}

}  // namespace bouquet::bench
