// Runs engine steps for programs in Python, which compare and time them: bench/run.py alternates
// between this process and a peer's, so that both see the same state of the machine; bench/gpu.py
// measures a GPU; tests/gpu/parity.py compares rows with the reference's.
//
//   engine_timing MODEL [NAME=VALUE ...] [requests=PATH]
//
// NAME=VALUE: see engine_arguments.h. Once the model is loaded, a line tells {"load_seconds": S,
// "width": W, "weight_bytes": B, "steps_under_way": U, "dtype": T, "device": D, "numerics": N}.
// Then standard input, or the file PATH, one JSON object a line:
//   {"repeat": R, "batches": [[[ids], ...], ...], "rounds": N, "under_way": U, "rows": PATH,
//    "profile": true}
// All batches are run R times, each batch as one step, U steps under way at once (1), going N times
// through the batches without a pause (1). Answer, one JSON object a line:
//   {"us": [R times], "host_us": [R times in Step alone, of all steps], "row": [first row of the
//    first batch], "replays": C, "captures": C, "eager": C}
// With "rows", the rows of the last repetition are written there, float32, in the order of the
// batches. With "profile", only the last repetition is shown to a profiler, see device_profiler.h.
#include <chrono>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "bench/device_profiler.h"
#include "bench/engine_arguments.h"
#include "model/model_folder.h"
#include "rose/batch.h"
#include "rose/engine.h"

namespace bouquet::bench {
namespace {

constexpr int32_t kMaxStepTokens = 4096;

struct Task {
  int64_t repeat = 1;
  int64_t rounds = 1;
  int64_t under_way = 1;
  std::string rows;  // a path, or empty
  bool is_profiled = false;
  std::vector<rose::Batch> batches;
};

Result<Task> ParseTask(const std::string& line) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(line, "standard input"));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), "standard input"));
  Task task;
  ASSIGN_OR_RETURN(task.repeat, object.RequiredInteger("repeat", 1, 1'000'000));
  ASSIGN_OR_RETURN(const std::optional<int64_t> rounds, object.Integer("rounds", 1, 1'000'000));
  task.rounds = rounds.value_or(1);
  ASSIGN_OR_RETURN(const std::optional<bool> profile, object.Bool("profile"));
  task.is_profiled = profile.value_or(false);
  ASSIGN_OR_RETURN(const std::optional<int64_t> under_way, object.Integer("under_way", 1, 2));
  task.under_way = under_way.value_or(1);
  ASSIGN_OR_RETURN(const std::optional<std::string> rows, object.String("rows"));
  task.rows = rows.value_or("");
  simdjson::dom::array batches;
  if (object.object()["batches"].get(batches) != simdjson::SUCCESS) {
    return InvalidArgument("expected an array", "batches");
  }
  for (const simdjson::dom::element element : batches) {
    rose::Batch batch;
    simdjson::dom::array sequences;
    if (element.get(sequences) != simdjson::SUCCESS) {
      return InvalidArgument("expected an array of sequences", "batches");
    }
    for (const simdjson::dom::element sequence : sequences) {
      simdjson::dom::array ids;
      if (sequence.get(ids) != simdjson::SUCCESS) {
        return InvalidArgument("expected an array of ids", "batches");
      }
      std::vector<int32_t> token_ids;
      for (const simdjson::dom::element id : ids) {
        token_ids.push_back(static_cast<int32_t>(id.get_int64().value()));
      }
      batch.Add(token_ids, {}, 0, {});
    }
    task.batches.push_back(std::move(batch));
  }
  return task;
}

// The rows of a step in the order of its sequences.
std::span<const std::byte> RowsOf(const rose::StepResult& step) {
  return step.blocks.empty() ? std::span<const std::byte>() : step.blocks[0].data;
}

std::string FirstRow(const rose::StepResult& step) {
  std::string row;
  const auto* values = reinterpret_cast<const float*>(RowsOf(step).data());
  for (uint32_t i = 0; i < step.blocks[0].width; ++i) {
    row += i == 0 ? "" : ",";
    AppendJsonFloat(values[i], row);
  }
  return row;
}

using Microseconds = std::chrono::duration<double, std::micro>;

class Run {
 public:
  Run(rose::Engine& engine, const Task& task) : engine_(engine), task_(task) {}

  Result<std::string> Answer() {
    std::ofstream rows;
    for (int64_t i = 0; i < task_.repeat; ++i) {
      const bool is_last = i + 1 == task_.repeat;
      if (is_last && !task_.rows.empty()) {
        rows.open(task_.rows, std::ios::binary);
      }
      std::optional<DeviceProfiler> profiler;
      if (is_last && task_.is_profiled) {
        ASSIGN_OR_RETURN(DeviceProfiler started, DeviceProfiler::Start());
        profiler.emplace(std::move(started));
      }
      host_ = {};
      const auto start = std::chrono::steady_clock::now();
      RETURN_IF_ERROR(AllBatches(rows));
      const Microseconds took = std::chrono::steady_clock::now() - start;
      const std::string_view comma = i == 0 ? "" : ",";
      times_ += fmt::format("{}{:.2f}", comma, took.count());
      host_times_ += fmt::format("{}{:.2f}", comma, host_.count());
    }
    return fmt::format("\"us\": [{}], \"host_us\": [{}], \"row\": [{}]", times_, host_times_, row_);
  }

 private:
  Status AllBatches(std::ofstream& rows) {
    std::deque<rose::LazyTensor> under_way;
    const size_t steps = task_.batches.size() * static_cast<size_t>(task_.rounds);
    for (size_t i = 0; i < steps || !under_way.empty();) {
      const bool is_full = static_cast<int64_t>(under_way.size()) == task_.under_way;
      if (i < steps && !is_full) {
        const auto start = std::chrono::steady_clock::now();
        under_way.push_back(engine_.Step(task_.batches[i % task_.batches.size()]));
        host_ += std::chrono::steady_clock::now() - start;
        ++i;
        continue;
      }
      ASSIGN_OR_RETURN(const rose::StepResult step, under_way.front().Wait());
      if (row_.empty()) {
        row_ = FirstRow(step);
      }
      if (rows.is_open()) {
        const std::span<const std::byte> bytes = RowsOf(step);
        rows.write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
      }
      under_way.pop_front();
    }
    return {};
  }

  rose::Engine& engine_;
  const Task& task_;
  Microseconds host_{};  // in Step, of this repetition
  std::string times_, host_times_, row_;
};

Status AnswerRequests(std::istream& requests, rose::Engine& engine) {
  for (std::string line; std::getline(requests, line);) {
    ASSIGN_OR_RETURN(const Task task, ParseTask(line));
    if (task.under_way > engine.info().steps_under_way) {
      return InvalidArgument(fmt::format("this device has {} steps under way at most, not {}",
                                         engine.info().steps_under_way, task.under_way),
                             "under_way");
    }
    const rose::GraphCounts before = engine.graph_counts();
    ASSIGN_OR_RETURN(const std::string answer, Run(engine, task).Answer());
    const rose::GraphCounts after = engine.graph_counts();
    std::cout << fmt::format("{{{}, \"replays\": {}, \"captures\": {}, \"eager\": {}}}\n", answer,
                             after.replays - before.replays, after.captures - before.captures,
                             after.eager - before.eager)
              << std::flush;
  }
  return {};
}

Status Serve(const std::string& path, const rose::EngineOptions& options, std::istream& requests) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const model::ModelFolder folder, model::ModelFolder::Open(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<rose::Engine> engine, rose::Engine::Load(folder, options));
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - start;
  const rose::EngineInfo& info = engine->info();
  std::cout << fmt::format(
                   "{{\"load_seconds\": {:.3f}, \"width\": {}, \"weight_bytes\": {}, "
                   "\"steps_under_way\": {}, \"dtype\": \"{}\", \"device\": \"{}\", "
                   "\"numerics\": \"{}\"}}\n",
                   load.count(), info.limits.width, info.weight_bytes, info.steps_under_way,
                   info.dtype, info.device_description, info.numerics_fingerprint)
            << std::flush;
  return AnswerRequests(requests, *engine);
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: engine_timing MODEL [NAME=VALUE ...] [requests=PATH]\n";
    return 2;
  }
  bouquet::rose::EngineOptions options;
  options.device = "cpu";
  options.max_step_tokens = bouquet::bench::kMaxStepTokens;
  std::span<char* const> arguments(argv + 2, static_cast<size_t>(argc - 2));
  std::ifstream file;
  constexpr std::string_view kRequests = "requests=";
  if (!arguments.empty() && std::string_view(arguments.back()).starts_with(kRequests)) {
    file.open(arguments.back() + kRequests.size());
    if (!file) {
      std::cerr << "engine_timing: cannot be read: " << arguments.back() << '\n';
      return 1;
    }
    arguments = arguments.first(arguments.size() - 1);
  }
  bouquet::Status status = bouquet::StartLogging("warning", "text");
  if (status.ok()) {
    status = bouquet::bench::ReadEngineArguments(arguments, &options);
  }
  if (status.ok()) {
    status = bouquet::bench::Serve(argv[1], options, file.is_open() ? file : std::cin);
  }
  if (!status.ok()) {
    std::cerr << "engine_timing: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
