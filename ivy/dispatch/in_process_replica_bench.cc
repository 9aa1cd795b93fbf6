// Question: what does the way handler -> core -> handler add to one short request, coroutine and
// hand-overs between threads included? An engine that answers at once, one io_context thread, as
// many coroutines as the argument says. Unit: wall time of one request of 12 tokens.
#include <benchmark/benchmark.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "ivy/dispatch/in_process_replica.h"
#include "testing/null_step_engine.h"
#include "tulip/core.h"

namespace bouquet::ivy {
namespace {

boost::asio::awaitable<void> SubmitMany(InProcessReplica& replica, int count) {
  for (int i = 0; i < count; ++i) {
    Chunk chunk;
    chunk.sequences.push_back({.ids = std::vector<int32_t>(12, 101)});
    chunk.deadline = Deadline::After(std::chrono::steady_clock::now(), std::chrono::seconds(30));
    const auto rows = co_await replica.Submit(std::move(chunk));
    benchmark::DoNotOptimize(rows);
  }
}

void SubmitFromCoroutine(benchmark::State& state) {
  constexpr int kRequests = 1000;
  const SystemClock clock;
  Metrics metrics;
  auto core = tulip::Core::Start(
      std::unique_ptr<tulip::StepEngine>(std::make_unique<testing::NullStepEngine>()),
      {.model_name = "null", .step_tokens = 4096}, metrics, clock);
  InProcessReplica replica(*core.value());
  for (auto _ : state) {
    boost::asio::io_context context(1);
    for (int64_t i = 0; i < state.range(0); ++i) {
      boost::asio::co_spawn(context, SubmitMany(replica, kRequests), boost::asio::detached);
    }
    context.run();
  }
  const auto requests = static_cast<double>(state.iterations() * kRequests * state.range(0));
  state.counters["request"] =
      benchmark::Counter(requests, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(SubmitFromCoroutine)
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bouquet::ivy
