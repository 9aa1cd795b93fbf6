// Question: what does Tulip itself add to one short request? An engine that answers at once, so all
// that is left is the way through: submit, serving loop, completer, and back to the caller, two
// hand-overs between threads and the caller's own wake-up. Unit: time of one round trip.
#include <vector>

#include <benchmark/benchmark.h>

#include "testing/null_step_engine.h"
#include "testing/waiting_reply.h"
#include "tulip/core.h"

namespace bouquet::tulip {
namespace {

// Argument: sequences per chunk, 12 tokens each.
void RoundTrip(benchmark::State& state) {
  const SystemClock clock;
  Metrics metrics;
  auto core = Core::Start(std::unique_ptr<StepEngine>(std::make_unique<testing::NullStepEngine>()),
                          {.model_name = "null", .step_tokens = 4096}, metrics, clock);
  const auto num_sequences = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    std::vector<Sequence> sequences(num_sequences);
    for (Sequence& sequence : sequences) {
      sequence.ids.assign(12, 101);
    }
    auto reply = std::make_shared<testing::WaitingReply>(std::stop_token());
    if (!core.value()->Submit(std::move(sequences), reply).ok()) {
      state.SkipWithError("refused");
      break;
    }
    reply->Wait();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * num_sequences));
}
BENCHMARK(RoundTrip)->Arg(1)->Arg(32)->Arg(256)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bouquet::tulip
