// What the machine gives at this moment, for programs in Python that state shares of it: they ask
// between the turns of the engines, so that a busy moment meets both.
//
//   machine_peak THREADS MEGABYTES
//
// A line first tells {"bfloat16": whether this processor multiplies it}. Then for each line of
// standard input, a line:
//   {"float32": FLOP/s, "bfloat16": FLOP/s or null, "read": bytes/s, "read_weights": bytes/s}
// each of THREADS threads at once. "read" streams memory that no cache holds, "read_weights" again
// and again the same MEGABYTES, as many as the matrices of the model under test: what a cache holds
// of them comes faster.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "rose/backend/cpu/peak.h"

namespace bouquet::bench {
namespace {

using Clock = std::chrono::steady_clock;
using rose::Dtype;
using rose::cpu::Isa;
constexpr auto kTurn = std::chrono::milliseconds(40);
constexpr int kLanes = 16;
constexpr int64_t kMemoryMegabytes = 512;

using Vector [[gnu::vector_size(4 * kLanes)]] = float;

// A part of the memory for each thread, read piece by piece, round and round.
class Memory {
 public:
  Memory(int64_t megabytes, int threads)
      : pieces_(megabytes > kPieces ? kPieces : 1),
        parts_(static_cast<size_t>(threads)),
        next_(static_cast<size_t>(threads), 0) {
    const auto vectors = static_cast<size_t>(megabytes * (1 << 20)) / sizeof(Vector);
    for (std::vector<Vector>& part : parts_) {
      part.assign(vectors / static_cast<size_t>(threads), Vector{} + 1.0F);
    }
  }

  // Bytes read.
  double ReadPiece(int thread, float* out) {
    const std::vector<Vector>& part = parts_[static_cast<size_t>(thread)];
    size_t& next = next_[static_cast<size_t>(thread)];
    const size_t size = part.size() / pieces_;
    Read(part.data() + next * size, size, out);
    next = (next + 1) % pieces_;
    return static_cast<double>(size * sizeof(Vector));
  }

 private:
  static constexpr int64_t kPieces = 16;

#if defined(__x86_64__)
  [[gnu::target_clones("default", "arch=haswell", "arch=skylake-avx512")]]
#endif
  static void
  Read(const Vector* data, size_t size, float* out) {
    constexpr size_t kAtOnce = 8;
    Vector sums[kAtOnce] = {};
    for (size_t i = 0; i + kAtOnce <= size; i += kAtOnce) {
#pragma GCC unroll 8
      for (size_t j = 0; j < kAtOnce; ++j) {
        sums[j] += data[i + j];
      }
    }
    for (const Vector& sum : sums) {
      *out += sum[0];
    }
  }

  size_t pieces_;
  std::vector<std::vector<Vector>> parts_;
  std::vector<size_t> next_;
};

// The best moment of each thread within one turn, of all threads together, in units a second. Work
// gets the thread's index and returns the units that it did.
double Rate(int threads, const std::function<double(int, float*)>& work) {
  std::vector<double> best(static_cast<size_t>(threads), 0);
  std::vector<float> sinks(static_cast<size_t>(threads) * kLanes, 0);
  std::atomic<int> waiting = threads;
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      --waiting;
      while (waiting > 0) {
        std::this_thread::yield();
      }
      float* sink = &sinks[static_cast<size_t>(thread) * kLanes];
      const auto end = Clock::now() + kTurn;
      do {
        const auto start = Clock::now();
        const double units = work(thread, sink);
        const std::chrono::duration<double> took = Clock::now() - start;
        best[static_cast<size_t>(thread)] =
            std::max(best[static_cast<size_t>(thread)], units / took.count());
      } while (Clock::now() < end);
    });
  }
  double sum = 0;
  for (int thread = 0; thread < threads; ++thread) {
    team[static_cast<size_t>(thread)].join();
    sum += best[static_cast<size_t>(thread)];
  }
  return sum;
}

double ReadRate(Memory& memory, int threads) {
  return Rate(threads, [&](int thread, float* sink) { return memory.ReadPiece(thread, sink); });
}

double MultiplyRate(int threads, Dtype dtype) {
  const Isa isa = rose::cpu::DetectIsa();
  return Rate(threads, [&](int, float* sink) { return MultiplyAdd(isa, dtype, sink); });
}

void Serve(int threads, int64_t megabytes) {
  Memory memory(kMemoryMegabytes, threads);
  Memory weights(megabytes, threads);
  const bool has_bfloat16 = rose::cpu::DetectIsa() == Isa::kAvx512Bf16;
  std::cout << fmt::format("{{\"bfloat16\": {}}}\n", has_bfloat16) << std::flush;
  for (std::string line; std::getline(std::cin, line);) {
    const double float32 = MultiplyRate(threads, Dtype::kFloat32);
    const std::string bfloat16 =
        has_bfloat16 ? fmt::format("{:.4g}", MultiplyRate(threads, Dtype::kBfloat16)) : "null";
    std::cout << fmt::format(
                     "{{\"float32\": {:.4g}, \"bfloat16\": {}, \"read\": {:.4g}, "
                     "\"read_weights\": {:.4g}}}\n",
                     float32, bfloat16, ReadRate(memory, threads), ReadRate(weights, threads))
              << std::flush;
  }
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  const int threads = argc == 3 ? std::atoi(argv[1]) : 0;
  const int megabytes = argc == 3 ? std::atoi(argv[2]) : 0;
  if (threads < 1 || threads > 1024 || megabytes < 1 || megabytes > 65536) {
    std::cerr << "usage: machine_peak THREADS MEGABYTES\n";
    return 2;
  }
  bouquet::bench::Serve(threads, megabytes);
  return 0;
}
