// How long is a step of the demo's model (all-MiniLM-L6-v2)? One sequence of 8..256 tokens; 1,024
// tokens as eight abstracts of 128; and how long until it is ready. Random ids: the work does not
// depend on them. Times are wall milliseconds; tokens_per_second counts the tokens of all
// sequences. Run after one warm-up step that Load makes; compare runs of the same machine only.
#include <fstream>
#include <map>
#include <random>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "rose/engine.h"
#include "testing/test_data.h"

namespace bouquet::rose {
namespace {

double ResidentMegabytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

std::unique_ptr<Engine> Load(const std::string& dtype, int32_t threads) {
  const auto folder = model::ModelFolder::Open(::bouquet::testing::DemoModelPath());
  CHECK(folder.ok());
  auto engine = Engine::Load(*folder, {.dtype = dtype, .threads = threads});
  CHECK(engine.ok());
  return std::move(engine).value();
}

Batch MakeBatch(int32_t num_sequences, int32_t length) {
  std::mt19937 random(1);
  Batch batch;
  for (int32_t i = 0; i < num_sequences; ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(length));
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(1000 + random() % 20000);
    }
    batch.Add(ids, {}, 0, {});
  }
  return batch;
}

void RunSteps(benchmark::State& state, const std::string& dtype, int32_t threads,
              const Batch& batch) {
  const std::unique_ptr<Engine> engine = Load(dtype, threads);
  for (auto _ : state) {
    LazyTensor step = engine->Step(batch);
    benchmark::DoNotOptimize(step.Wait().ok());
  }
  state.SetLabel(engine->info().device_description + ", " + dtype);
  state.counters["tokens_per_second"] =
      benchmark::Counter(batch.num_tokens(), benchmark::Counter::kIsIterationInvariantRate);
}

void BM_OneSequence(benchmark::State& state, const std::string& dtype) {
  RunSteps(state, dtype, static_cast<int32_t>(state.range(1)),
           MakeBatch(1, static_cast<int32_t>(state.range(0))));
}

void BM_Abstracts(benchmark::State& state, const std::string& dtype) {
  RunSteps(state, dtype, static_cast<int32_t>(state.range(0)), MakeBatch(8, 128));
}

void BM_Load(benchmark::State& state) {
  double resident = 0;
  for (auto _ : state) {
    const std::unique_ptr<Engine> engine = Load("float32", 2);
    benchmark::DoNotOptimize(engine->info().weight_bytes);
    resident = ResidentMegabytes();
  }
  state.counters["resident_megabytes"] = resident;
}

BENCHMARK(BM_Load)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(BM_OneSequence, float32, "float32")
    ->ArgsProduct({{8, 16, 32, 128, 256}, {1, 2}})
    ->ArgNames({"tokens", "threads"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Abstracts, float32, "float32")
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Abstracts, bfloat16, "bfloat16")
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace bouquet::rose
