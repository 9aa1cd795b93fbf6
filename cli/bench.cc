#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "bench/load/commit.h"
#include "bench/load/compare.h"
#include "bench/load/html_report.h"
#include "bench/load/report.h"
#include "bench/load/vector_check.h"
#include "cli/bench_flags.h"
#include "cli/command.h"

namespace bouquet::cli {
namespace {

std::atomic<bool> interrupted = false;

void HandleInterrupt(int /*signal*/) { interrupted = true; }

/// Where the run is, on standard error: redrawn on a terminal, else a line every ten seconds.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled)
      : enabled_(enabled), terminal_(isatty(STDERR_FILENO) == 1), next_draw_(clock_.Now()) {}

  void Draw(const bench::MeasureProgress& progress) {
    if (!enabled_ || clock_.Now() < next_draw_) {
      return;
    }
    next_draw_ = clock_.Now() +
                 (terminal_ ? std::chrono::milliseconds(250) : std::chrono::milliseconds(10'000));
    fmt::print(stderr, "{}{}: {}, {} requests answered{}", terminal_ ? "\r\x1b[K" : "",
               progress.row,
               progress.round == 0 ? "warm-up"
                                   : fmt::format("round {} of {}", progress.round, progress.rounds),
               progress.num_answered, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void Clear() {
    if (enabled_ && terminal_) {
      fmt::print(stderr, "\r\x1b[K");
    }
  }

 private:
  const SystemClock clock_;
  bool enabled_;
  bool terminal_;
  TimePoint next_draw_;
};

/// The command as it was given, without the key.
std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command;
  bool is_key = false;
  for (std::string word; std::getline(file, word, '\0');) {
    const bool key_inside = word.starts_with("--api-key=");
    command += command.empty() ? "" : " ";
    command += key_inside ? "--api-key=..." : is_key ? "..." : word;
    is_key = word == "--api-key";
  }
  return command;
}

std::string UtcDate() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// What is compared before anything is measured.
std::vector<bench::CheckCase> CheckCases(const BenchFlags& flags, const bench::InputSource& source,
                                         const std::vector<bench::RowPlan>& rows,
                                         std::optional<size_t> num_reference_rows) {
  std::vector<bench::CheckCase> cases;
  const auto most = static_cast<size_t>(flags.check_inputs);
  if (flags.uses_texts() || num_reference_rows) {
    const size_t count = std::min({most, source.texts.size(), num_reference_rows.value_or(most)});
    for (size_t i = 0; i < count; ++i) {
      cases.push_back({fmt::format("{}, text {}", flags.texts, i + 1), source.texts[i]});
    }
    return cases;
  }
  // Of each row the first inputs that it will send, so that every length is compared.
  for (size_t i = 0; cases.size() < most && i < most; ++i) {
    for (const bench::RowPlan& row : rows) {
      if (cases.size() < most) {
        cases.push_back({fmt::format("row \"{}\", request {}, input 1", row.name, i + 1),
                         bench::MakeInputs(source, row, i).front()});
      }
    }
  }
  return cases;
}

struct CheckResult {
  ExitCode code = ExitCode::kOk;
  Status status;
  std::optional<bench::CheckOutcome> outcome;
};

CheckResult CheckAgainstReference(const BenchFlags& flags, const client::ClientOptions& target,
                                  const bench::InputSource& source,
                                  const std::vector<bench::RowPlan>& rows) {
  Result<std::optional<client::ClientOptions>> server = flags.ReferenceServer();
  if (!server.ok()) {
    return {ExitCode::kUsage, server.status(), {}};
  }
  std::optional<bench::ReferenceRows> reference;
  if (!flags.reference.empty()) {
    Result<bench::ReferenceRows> read = bench::ReadReference(flags.reference);
    if (!read.ok()) {
      return {ExitCode::kInput, read.status(), {}};
    }
    reference = std::move(read).value();
  } else if (*server) {
    const Result<bench::ServerFacts> facts =
        bench::AskServerFacts(**server, {.interrupted = &interrupted, .on_progress = {}});
    if (!facts.ok()) {
      return {ExitCode::kServer, facts.status(), {}};
    }
    (*server)->model = facts->model;
  } else {
    return {};
  }
  const auto cases = CheckCases(flags, source, rows,
                                reference ? std::optional(reference->num_rows()) : std::nullopt);
  Result<bench::CheckOutcome> outcome = bench::CheckVectors(
      target, cases, reference ? &*reference : nullptr, *server ? &**server : nullptr,
      {.interrupted = &interrupted, .on_progress = {}});
  if (!outcome.ok()) {
    return {outcome.code() == StatusCode::kCancelled ? ExitCode::kInterrupted : ExitCode::kServer,
            outcome.status(),
            {}};
  }
  outcome->reference = reference ? flags.reference : flags.reference_url;
  outcome->tolerance = flags.tolerance;
  if (!outcome->passed()) {
    return {
        ExitCode::kDisagreement,
        FailedPrecondition(fmt::format(
            "the vectors do not agree with {}, so no times are reported: {}: 1 - cosine {:.3e}, "
            "allowed {:.1e} (--tolerance)",
            outcome->reference, outcome->worst_input, outcome->worst, flags.tolerance)),
        {}};
  }
  return {ExitCode::kOk, Status(), std::move(outcome).value()};
}

bench::Report Describe(const BenchFlags& flags, const bench::ServerFacts& facts,
                       const bench::InputSource& source) {
  bench::Report report;
  report.suite = BenchSuiteName(flags.suite);
  report.date = UtcDate();
  report.version = BOUQUET_VERSION;
  report.commit = bench::BuildCommit();
  report.command = CommandLine();
  report.url = flags.url;
  report.protocol = flags.url.starts_with("grpc://") ? "grpc" : flags.protocol;
  report.inputs =
      flags.uses_texts()
          ? fmt::format("{} texts of {}", source.texts.size(), flags.texts)
          : fmt::format("ids {}..{}, seed {}", source.min_id, source.max_id, source.seed);
  report.rounds = flags.rounds;
  report.warm_up_seconds = flags.warm_up_seconds;
  report.server = facts;
  report.machine = bench::DescribeMachine();
  report.clock = bench::DescribeClock();
  return report;
}

ExitCode Publish(const BenchFlags& flags, const bench::Report& report) {
  fmt::print("{}", bench::WriteTable(report));
  if (!report.check) {
    fmt::print("vectors were not compared with a reference (--reference, --reference-url)\n");
  }
  std::fflush(stdout);
  if (!flags.output.empty()) {
    if (const Status status = bench::WriteFile(flags.output, bench::WriteJson(report));
        !status.ok()) {
      return Fail(ExitCode::kOutput, status);
    }
  }
  if (!flags.html.empty()) {
    if (const Status status = bench::WriteFile(flags.html, bench::WriteHtml(report));
        !status.ok()) {
      return Fail(ExitCode::kOutput, status);
    }
  }
  if (!report.complete()) {
    return Fail(ExitCode::kInterrupted, Cancelled("interrupted; the result is marked incomplete"));
  }
  return ExitCode::kOk;
}

ExitCode FailedRun(const Status& status) {
  switch (status.code()) {
    case StatusCode::kCancelled: return Fail(ExitCode::kInterrupted, status);
    case StatusCode::kInternal:
    case StatusCode::kResourceExhausted: return Fail(ExitCode::kInternal, status);
    default: return Fail(ExitCode::kServer, status);
  }
}

ExitCode RunSuite(const BenchFlags& flags) {
  Result<client::ClientOptions> target = flags.Target();
  if (!target.ok()) {
    return Fail(ExitCode::kUsage, target.status());
  }
  std::signal(SIGINT, HandleInterrupt);
  std::signal(SIGTERM, HandleInterrupt);
  const Result<bench::ServerFacts> facts =
      bench::AskServerFacts(*target, {.interrupted = &interrupted, .on_progress = {}});
  if (!facts.ok()) {
    return FailedRun(facts.status());
  }
  target->model = flags.model.empty() ? facts->model : flags.model;
  const Result<bench::InputSource> source = flags.Inputs(*facts);
  if (!source.ok()) {
    return Fail(source.code() == StatusCode::kNotFound ? ExitCode::kInput : ExitCode::kUsage,
                source.status());
  }
  const Result<std::vector<bench::RowPlan>> rows = flags.Rows(*facts);
  if (!rows.ok()) {
    return Fail(ExitCode::kUsage, rows.status());
  }
  CheckResult check = CheckAgainstReference(flags, *target, *source, *rows);
  if (check.code != ExitCode::kOk) {
    return Fail(check.code, check.status);
  }
  bench::Report report = Describe(flags, *facts, *source);
  report.check = std::move(check.outcome);

  ProgressLine progress(!flags.quiet);
  bench::MeasurePlan plan;
  plan.target = *target;
  plan.inputs = *source;
  plan.rows = *rows;
  plan.rounds = flags.rounds;
  plan.warm_up = std::chrono::nanoseconds(static_cast<int64_t>(flags.warm_up_seconds * 1e9));
  plan.warm_up_requests = flags.warm_up_requests;
  const Result<std::vector<bench::RowResult>> results = bench::MeasureRows(
      plan, {.interrupted = &interrupted,
             .on_progress = [&](const bench::MeasureProgress& now) { progress.Draw(now); }});
  progress.Clear();
  if (!results.ok()) {
    return FailedRun(results.status());
  }
  for (const bench::RowResult& row : *results) {
    report.rows.push_back(bench::Summarise(row));
  }
  return Publish(flags, report);
}

Result<bench::ComparableResult> ReadResult(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(fmt::format("cannot read {}", path));
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return bench::ReadComparable(text, path);
}

ExitCode RunCompare(const std::string& before_path, const std::string& after_path) {
  const Result<bench::ComparableResult> before = ReadResult(before_path);
  const Result<bench::ComparableResult> after = ReadResult(after_path);
  if (!before.ok() || !after.ok()) {
    return Fail(ExitCode::kInput, before.ok() ? after.status() : before.status());
  }
  fmt::print("{}", bench::WriteComparison(*before, *after));
  return ExitCode::kOk;
}

constexpr const char* kSuiteExamples =
    "Examples:\n"
    "  bouquet bench latency http://127.0.0.1:8080 --output result.json --html report.html\n"
    "  bouquet bench throughput 127.0.0.1:8080 --lengths 128,256 --rounds 5\n"
    "  bouquet bench concurrency 127.0.0.1:8080 --texts texts.txt --reference vectors.npy\n"
    "  bouquet bench load 127.0.0.1:8080 --rate 200 --burst 1000 --burst-seconds 5 --tokens 16\n"
    "  bouquet bench latency 127.0.0.1:8081 --protocol tei --reference-url http://127.0.0.1:8080\n"
    "  bouquet bench latency grpc://127.0.0.1:9090 --reference-url http://127.0.0.1:8080\n"
    "  bouquet bench compare before.json after.json";

std::pair<CLI::App*, RunCommand> AddSuite(CLI::App& bench, BenchSuite suite,
                                          const std::string& help) {
  auto flags = std::make_shared<BenchFlags>();
  flags->suite = suite;
  CLI::App* command = bench.add_subcommand(BenchSuiteName(suite), help);
  flags->AddTo(*command);
  command->footer(kSuiteExamples);
  return {command, [flags] { return RunSuite(*flags); }};
}

}  // namespace

RunCommand AddBenchCommand(CLI::App& app) {
  CLI::App* bench = app.add_subcommand(
      "bench",
      "Load generator: measures any embedding server, over OpenAI's or TEI's HTTP or gRPC");
  bench->require_subcommand(1);
  std::vector<std::pair<CLI::App*, RunCommand>> commands{
      AddSuite(*bench, BenchSuite::kLatency, "One input at a time, a row per length"),
      AddSuite(*bench, BenchSuite::kScoring, "Batches of 5, 25 and 50, one at a time"),
      AddSuite(*bench, BenchSuite::kThroughput, "Batches of 100 from four client processes"),
      AddSuite(*bench, BenchSuite::kConcurrency, "1 to 16 requests of one input under way"),
      AddSuite(*bench, BenchSuite::kLoad,
               "Requests at a fixed rate (open loop), with a burst if wanted")};

  struct Paths {
    std::string before;
    std::string after;
  };
  auto paths = std::make_shared<Paths>();
  CLI::App* compare = bench->add_subcommand(
      "compare", "Two result files side by side; marks changes beyond the spread of the rounds");
  compare->add_option("BEFORE", paths->before, "result file")->required();
  compare->add_option("AFTER", paths->after, "result file")->required();
  commands.emplace_back(compare, [paths] { return RunCompare(paths->before, paths->after); });
  bench->footer(kSuiteExamples);
  return [commands] {
    for (const auto& [command, run] : commands) {
      if (command->parsed()) {
        return run();
      }
    }
    return ExitCode::kUsage;
  };
}

}  // namespace bouquet::cli
