// What does handing work over cost? Barrier: one ForEachChunk of trivial chunks inside a step.
// PostToStart: from PostStep to the first instruction of the step. EndToWaiter: from its last
// instruction to whoever waits for it. Step: from PostStep until the waiter runs again, around a
// step of 50 µs of work. Arguments: threads, and whether every processor has a process that spins
// on it. Single times, in µs, as the median, the 90th and the 99th percentile.

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "rose/backend/cpu/processors.h"
#include "rose/backend/cpu/worker_pool.h"

namespace bouquet::rose::cpu {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr int kBarriersPerStep = 1000;
// Between two steps, so that everybody sleeps as between two requests.
constexpr std::chrono::microseconds kRest{200};
constexpr std::chrono::microseconds kWork{50};

Time Now() { return std::chrono::steady_clock::now(); }

double Microseconds(Time from, Time to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

/// A process that spins on each processor, as other people's work does.
class BusyProcessors {
 public:
  BusyProcessors() {
    const std::vector<int32_t> processors = UsableProcessors().value();
    for (const int32_t processor : processors) {
      const pid_t child = fork();
      CHECK(child >= 0);
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(processor, &mask);
        sched_setaffinity(0, sizeof mask, &mask);
        for (uint64_t turns = 0;; ++turns) {
          benchmark::DoNotOptimize(turns);
        }
      }
      children_.push_back(child);
    }
  }
  ~BusyProcessors() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyProcessors(const BusyProcessors&) = delete;
  BusyProcessors& operator=(const BusyProcessors&) = delete;

 private:
  std::vector<pid_t> children_;
};

/// The benchmark's own loop around `times_of_a_step`, which appends to what it is given.
void Run(benchmark::State& state,
         const std::function<void(WorkerPool& pool, std::vector<double>& times)>& times_of_a_step) {
  std::optional<BusyProcessors> busy;
  if (state.range(1) != 0) {
    busy.emplace();  // before the pool's threads: they are forked without them
  }
  WorkerPool pool(static_cast<int32_t>(state.range(0)));
  std::vector<double> times;
  for (auto _ : state) {
    std::this_thread::sleep_for(kRest);
    times_of_a_step(pool, times);
  }
  std::ranges::sort(times);
  const auto quantile = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  state.counters["p50_us"] = quantile(0.5);
  state.counters["p90_us"] = quantile(0.9);
  state.counters["p99_us"] = quantile(0.99);
}

void Barrier(benchmark::State& state) {
  Run(state, [](WorkerPool& pool, std::vector<double>& times) {
    pool.PostStep([&] {
      for (int i = 0; i < kBarriersPerStep; ++i) {
        const Time begin = Now();
        pool.ForEachChunk(2 * pool.size(),
                          [](int64_t chunk, int32_t) { benchmark::DoNotOptimize(chunk); });
        times.push_back(Microseconds(begin, Now()));
      }
    });
    pool.WaitUntilIdle();
  });
}

void PostToStart(benchmark::State& state) {
  Run(state, [](WorkerPool& pool, std::vector<double>& times) {
    Time start;
    const Time post = Now();
    pool.PostStep([&] { start = Now(); });
    pool.WaitUntilIdle();
    times.push_back(Microseconds(post, start));
  });
}

void EndToWaiter(benchmark::State& state) {
  Run(state, [](WorkerPool& pool, std::vector<double>& times) {
    Time end;
    pool.PostStep([&] {
      for (const Time begin = Now(); Now() - begin < kWork;) {
      }
      end = Now();
    });
    pool.WaitUntilIdle();
    times.push_back(Microseconds(end, Now()));
  });
}

void Step(benchmark::State& state) {
  Run(state, [](WorkerPool& pool, std::vector<double>& times) {
    const Time post = Now();
    pool.PostStep([] {
      for (const Time begin = Now(); Now() - begin < kWork;) {
      }
    });
    pool.WaitUntilIdle();
    times.push_back(Microseconds(post, Now()));
  });
}

void Arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"threads", "busy"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  bench->ArgsProduct({{1, 2}, {0, 1}});
}

BENCHMARK(Barrier)->Apply(Arguments);
BENCHMARK(PostToStart)->Apply(Arguments);
BENCHMARK(EndToWaiter)->Apply(Arguments);
BENCHMARK(Step)->Apply(Arguments);

}  // namespace
}  // namespace bouquet::rose::cpu
