// Runs engine steps for programs in Python, which compare and time them: bench/run.py alternates
// between this process and a peer's, so that both see the same state of the machine;
// tests/gpu/parity.py compares rows with the reference's.
//
//   engine_timing MODEL [NAME=VALUE ...]
//
// NAME=VALUE: threads, dtype, device, graphs, attention, max_step_tokens. Once the model is loaded,
// a line tells {"load_seconds": S, "width": W, "device": D}. Then standard input, one JSON object a
// line:
//   {"repeat": R, "batches": [[[ids], ...], ...], "under_way": U, "rows": PATH}
// All batches are run R times, each batch as one step, U steps under way at once (1). Answer, one
// JSON object a line: {"us": [R times of all batches], "row": [first row of the first batch]}. With
// "rows", the rows of the last repetition are written there, float32, in the order of the batches.
#include <charconv>
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
#include "model/model_folder.h"
#include "rose/batch.h"
#include "rose/engine.h"

namespace bouquet::bench {
namespace {

constexpr int32_t kMaxStepTokens = 4096;

struct Task {
  int64_t repeat = 1;
  int64_t under_way = 1;
  std::string rows;  // a path, or empty
  std::vector<rose::Batch> batches;
};

Result<Task> ParseTask(const std::string& line) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(line, "standard input"));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), "standard input"));
  Task task;
  ASSIGN_OR_RETURN(task.repeat, object.RequiredInteger("repeat", 1, 1'000'000));
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

class Run {
 public:
  Run(rose::Engine& engine, const Task& task) : engine_(engine), task_(task) {}

  Result<std::string> Answer() {
    std::ofstream rows;
    for (int64_t i = 0; i < task_.repeat; ++i) {
      if (i + 1 == task_.repeat && !task_.rows.empty()) {
        rows.open(task_.rows, std::ios::binary);
      }
      const auto start = std::chrono::steady_clock::now();
      RETURN_IF_ERROR(AllBatches(rows));
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - start;
      times_ += fmt::format("{}{:.2f}", i == 0 ? "" : ",", took.count());
    }
    return fmt::format("{{\"us\": [{}], \"row\": [{}]}}", times_, row_);
  }

 private:
  Status AllBatches(std::ofstream& rows) {
    std::deque<rose::LazyTensor> under_way;
    for (size_t i = 0; i < task_.batches.size() || !under_way.empty();) {
      const bool is_full = static_cast<int64_t>(under_way.size()) == task_.under_way;
      if (i < task_.batches.size() && !is_full) {
        under_way.push_back(engine_.Step(task_.batches[i]));
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
  std::string times_, row_;
};

Status Serve(const std::string& path, const rose::EngineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const model::ModelFolder folder, model::ModelFolder::Open(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<rose::Engine> engine, rose::Engine::Load(folder, options));
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - start;
  std::cout << fmt::format("{{\"load_seconds\": {:.3f}, \"width\": {}, \"device\": \"{}\"}}\n",
                           load.count(), engine->info().limits.width,
                           engine->info().device_description)
            << std::flush;
  for (std::string line; std::getline(std::cin, line);) {
    ASSIGN_OR_RETURN(const Task task, ParseTask(line));
    const rose::GraphCounts before = engine->graph_counts();
    ASSIGN_OR_RETURN(const std::string answer, Run(*engine, task).Answer());
    const rose::GraphCounts after = engine->graph_counts();
    std::cout << answer.substr(0, answer.size() - 1)
              << fmt::format(", \"replays\": {}, \"captures\": {}, \"eager\": {}}}\n",
                             after.replays - before.replays, after.captures - before.captures,
                             after.eager - before.eager)
              << std::flush;
  }
  return {};
}

Status SetOption(std::string_view argument, rose::EngineOptions* options) {
  const size_t end = argument.find('=');
  const std::string_view name = argument.substr(0, end);
  const std::string value(end == std::string_view::npos ? "" : argument.substr(end + 1));
  const auto number = [&](int32_t* out) {
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), *out);
    return parsed.ec == std::errc() ? Status() : InvalidArgument("a number is expected", value);
  };
  if (name == "threads") {
    return number(&options->threads);
  }
  if (name == "max_step_tokens") {
    return number(&options->max_step_tokens);
  }
  for (const auto& [known, field] :
       {std::pair("dtype", &options->dtype), std::pair("device", &options->device),
        std::pair("graphs", &options->graphs), std::pair("attention", &options->attention)}) {
    if (name == known) {
      *field = value;
      return {};
    }
  }
  return InvalidArgument("no such option", std::string(argument));
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: engine_timing MODEL [NAME=VALUE ...]\n";
    return 2;
  }
  bouquet::rose::EngineOptions options;
  options.device = "cpu";
  options.max_step_tokens = bouquet::bench::kMaxStepTokens;
  bouquet::Status status = bouquet::StartLogging("warning", "text");
  for (int i = 2; i < argc && status.ok(); ++i) {
    status = bouquet::bench::SetOption(argv[i], &options);
  }
  if (status.ok()) {
    status = bouquet::bench::Serve(argv[1], options);
  }
  if (!status.ok()) {
    std::cerr << "engine_timing: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
