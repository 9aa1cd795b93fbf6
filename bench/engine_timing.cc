// Times engine steps for bench/run.py, which alternates between this process and a peer's, so that
// both see the same state of the machine.
//
//   engine_timing MODEL THREADS [DTYPE]
//
// Standard input, one JSON object a line: {"repeat": R, "batches": [[[ids], ...], ...]}. All
// batches are run R times, each batch as one step, one after another. Standard output, one JSON
// object a line: {"us": [R times of all batches], "row": [first row of the first batch]}.
#include <charconv>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/status.h"
#include "model/model_folder.h"
#include "rose/batch.h"
#include "rose/engine.h"

namespace bouquet::bench {
namespace {

constexpr int32_t kMaxStepTokens = 4096;

struct Task {
  int64_t repeat = 1;
  std::vector<rose::Batch> batches;
};

Result<Task> ParseTask(const std::string& line) {
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(line, "standard input"));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), "standard input"));
  Task task;
  ASSIGN_OR_RETURN(task.repeat, object.RequiredInteger("repeat", 1, 1'000'000));
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

// Appends the first row of `step` to `row` if that is still empty.
void KeepFirstRow(const rose::StepResult& step, std::string& row) {
  if (!row.empty() || step.blocks.empty()) {
    return;
  }
  const model::RowBlock& block = step.blocks[0];
  const auto* values = reinterpret_cast<const float*>(block.data.data());
  for (uint32_t i = 0; i < block.width; ++i) {
    row += i == 0 ? "" : ",";
    AppendJsonFloat(values[i], row);
  }
}

Result<std::string> Run(rose::Engine& engine, const Task& task) {
  std::string times, row;
  for (int64_t i = 0; i < task.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (const rose::Batch& batch : task.batches) {
      rose::LazyTensor result = engine.Step(batch);
      ASSIGN_OR_RETURN(const rose::StepResult step, result.Wait());
      KeepFirstRow(step, row);
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    times += fmt::format("{}{:.2f}", i == 0 ? "" : ",", took.count());
  }
  return fmt::format("{{\"us\": [{}], \"row\": [{}]}}", times, row);
}

Status Serve(const std::string& path, rose::EngineOptions options) {
  ASSIGN_OR_RETURN(const model::ModelFolder folder, model::ModelFolder::Open(path));
  options.max_step_tokens = kMaxStepTokens;
  ASSIGN_OR_RETURN(const std::unique_ptr<rose::Engine> engine, rose::Engine::Load(folder, options));
  for (std::string line; std::getline(std::cin, line);) {
    ASSIGN_OR_RETURN(const Task task, ParseTask(line));
    ASSIGN_OR_RETURN(const std::string answer, Run(*engine, task));
    std::cout << answer << '\n' << std::flush;
  }
  return {};
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  bouquet::rose::EngineOptions options;
  const std::string threads = argc > 2 ? argv[2] : "";
  const auto parsed =
      std::from_chars(threads.data(), threads.data() + threads.size(), options.threads);
  if (argc < 3 || argc > 4 || parsed.ec != std::errc()) {
    std::cerr << "usage: engine_timing MODEL THREADS [DTYPE]\n";
    return 2;
  }
  if (argc == 4) {
    options.dtype = argv[3];
  }
  const bouquet::Status status = bouquet::bench::Serve(argv[1], options);
  if (!status.ok()) {
    std::cerr << "engine_timing: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
