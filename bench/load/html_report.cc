#include "bench/load/html_report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "bench/load/svg_plot.h"

namespace bouquet::bench {
namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;"
    "color:#222}\n"
    "table{border-collapse:collapse;margin:1em 0;width:100%}\n"
    "th,td{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right;"
    "font-variant-numeric:tabular-nums}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "svg{width:100%;height:auto;margin:.5em 0}\n"
    "svg text{font:12px system-ui,sans-serif;fill:#333}\n"
    "svg polyline{fill:none;stroke-width:1.8}\nsvg .grid{stroke:#e5e5e5}\n"
    ".warn{background:#fff3cd;padding:.5em 1em}\ndt{font-weight:600}\ncode{font-size:.9em}\n"
    "</style>\n";

constexpr std::array<std::pair<const char*, const char*>, 8> kColumns = {
    std::pair("p50_ms", "p50 ms"),
    std::pair("p90_ms", "p90 ms"),
    std::pair("p99_ms", "p99 ms"),
    std::pair("p99_9_ms", "p99.9 ms"),
    std::pair("max_ms", "max ms"),
    std::pair("requests_per_s", "requests/s"),
    std::pair("embeddings_per_s", "inputs/s"),
    std::pair("tokens_per_s", "tokens/s")};

double Milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void AppendFact(std::string_view name, std::string_view value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "<dt>{}</dt><dd>{}</dd>\n", EscapeHtml(name),
                 EscapeHtml(value));
}

void AppendFacts(const Report& report, std::string& out) {
  const MachineFacts& machine = report.machine;
  out += "<dl>\n";
  AppendFact("Server",
             fmt::format("{} ({}), model {}, version {}", report.url, report.protocol,
                         report.server.model, report.server.version),
             out);
  AppendFact("Command", report.command, out);
  AppendFact("Load generator", fmt::format("version {}, commit {}", report.version, report.commit),
             out);
  AppendFact("Machine",
             fmt::format("{}, {} cores, {:.1f} GiB, load {:.2f}, {}", machine.cpu, machine.cores,
                         machine.memory_gib, machine.load_average, fmt::join(machine.flags, " ")),
             out);
  AppendFact("Clock",
             fmt::format("{}, resolution {} ns, a reading costs {} ns; cpu {:.0f} MHz",
                         report.clock.source, report.clock.resolution_ns, report.clock.read_ns,
                         report.clock.cpu_mhz),
             out);
  AppendFact("Inputs", report.inputs, out);
  AppendFact("Rounds",
             fmt::format("{}, after {} s of warm-up", report.rounds, report.warm_up_seconds), out);
  AppendFact(
      "Vectors",
      report.check
          ? fmt::format("{} agree with {}: 1 - cosine at most {:.2e} ({}), allowed {:.0e}",
                        report.check->num_inputs, report.check->reference, report.check->worst,
                        report.check->worst_input, report.check->tolerance)
          : "not compared with a reference",
      out);
  out += "</dl>\n";
}

void AppendTable(const Report& report, std::string& out) {
  out += "<table>\n<tr><th>row</th>";
  for (const auto& [name, title] : kColumns) {
    fmt::format_to(std::back_inserter(out), "<th>{}</th>", title);
  }
  out += "<th>answered</th><th>failed</th></tr>\n";
  for (const RowSummary& row : report.rows) {
    fmt::format_to(std::back_inserter(out), "<tr><td>{}{}</td>", EscapeHtml(row.plan.name),
                   row.complete ? "" : " (incomplete)");
    for (const auto& [name, title] : kColumns) {
      const Metric* metric = row.Find(name);
      if (metric == nullptr) {
        out += "<td>-</td>";
        continue;
      }
      fmt::format_to(std::back_inserter(out), "<td title=\"{} .. {} over {} rounds\">{}</td>",
                     ShowNumber(metric->spread.min), ShowNumber(metric->spread.max),
                     metric->rounds.size(), ShowNumber(metric->spread.median));
    }
    std::string failures;
    for (const auto& [name, outcome] : row.failed) {
      failures += fmt::format("{}{} x {}", failures.empty() ? "" : ", ", outcome.count, name);
    }
    fmt::format_to(std::back_inserter(out), "<td>{}</td><td>{}</td></tr>\n", row.num_ok,
                   failures.empty() ? "0" : EscapeHtml(failures));
  }
  out +=
      "</table>\n<p>Medians over the rounds; the least and the most are shown on hovering.</p>\n";
}

SvgPlot PercentilePlot(const Report& report) {
  constexpr std::array<double, 14> kPercents = {0,  10, 25, 50,   75,   80,   90,
                                                95, 98, 99, 99.5, 99.8, 99.9, 99.99};
  SvgPlot plot;
  plot.title = "Latency by percentile, all rounds";
  plot.x_title = "percentile";
  plot.y_title = "ms";
  plot.log_y = true;
  // Each nine gets the same room, as in HDR plots: that is where servers differ.
  const auto at = [](double percent) { return -std::log10(1 - percent / 100); };
  plot.x_ticks = {{at(0), "0"},   {at(50), "50"},     {at(90), "90"},
                  {at(99), "99"}, {at(99.9), "99.9"}, {at(99.99), "99.99"}};
  for (const RowSummary& row : report.rows) {
    if (row.num_ok == 0) {
      continue;
    }
    SvgPlot::Line& line = plot.lines.emplace_back();
    line.name = row.plan.name;
    for (const double percent : kPercents) {
      line.points.emplace_back(at(percent), Milliseconds(row.latency.Percentile(percent)));
    }
  }
  return plot;
}

SvgPlot OverTime(const RowSummary& row, std::string title, std::string y_title) {
  constexpr size_t kTicks = 8;
  SvgPlot plot;
  plot.title = row.plan.name + ": " + std::move(title);
  plot.x_title = "seconds since the start of the last round";
  plot.y_title = std::move(y_title);
  const double seconds = std::chrono::duration<double>(Tally::kWindow).count() *
                         static_cast<double>(row.windows.size());
  for (size_t i = 0; i <= kTicks; ++i) {
    const double x = seconds * static_cast<double>(i) / kTicks;
    plot.x_ticks.emplace_back(x, ShowNumber(x));
  }
  return plot;
}

void AppendTimePlots(const RowSummary& row, std::string& out) {
  const double width = std::chrono::duration<double>(Tally::kWindow).count();
  SvgPlot rates = OverTime(row, "answers by when they were due", "1/s");
  SvgPlot latencies = OverTime(row, "latency by when requests were due", "ms");
  rates.lines = {{"answered", {}}, {"failed", {}}};
  latencies.lines = {{"p50", {}}, {"p99", {}}};
  latencies.log_y = true;
  for (size_t i = 0; i < row.windows.size(); ++i) {
    const WindowSummary& window = row.windows[i];
    const double x = (static_cast<double>(i) + 0.5) * width;
    rates.lines[0].points.emplace_back(x, static_cast<double>(window.ok) / width);
    rates.lines[1].points.emplace_back(x, static_cast<double>(window.failed) / width);
    latencies.lines[0].points.emplace_back(x, window.p50_ms);
    latencies.lines[1].points.emplace_back(x, window.p99_ms);
  }
  out += WriteSvg(rates) + WriteSvg(latencies);
}

}  // namespace

std::string WriteHtml(const Report& report) {
  std::string out = kHead;
  fmt::format_to(std::back_inserter(out),
                 "<title>bouquet bench {}</title>\n<h1>bouquet bench {}</h1>\n"
                 "<p>{}</p>\n",
                 EscapeHtml(report.suite), EscapeHtml(report.suite), EscapeHtml(report.date));
  if (!report.complete()) {
    out += "<p class=\"warn\">Interrupted: the last row is incomplete.</p>\n";
  }
  AppendTable(report, out);
  out += WriteSvg(PercentilePlot(report));
  for (const RowSummary& row : report.rows) {
    if (!row.windows.empty()) {
      AppendTimePlots(row, out);
    }
  }
  AppendFacts(report, out);
  out += "</html>\n";
  return out;
}

}  // namespace bouquet::bench
