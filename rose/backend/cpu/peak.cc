#include "rose/backend/cpu/peak.h"

#include <algorithm>
#include <chrono>

namespace bouquet::rose::cpu {
namespace {

constexpr int kSums = 16;  // more than latency times issue width of any core we know
constexpr int kRounds = 100'000;
constexpr int kLanes = 16;

using Vector [[gnu::vector_size(4 * kLanes)]] = float;

#if defined(__x86_64__)
[[gnu::target_clones("default", "arch=haswell", "arch=skylake-avx512")]]
#endif
void MultiplyAdd(float factor, float addend, float* out) {
  Vector sums[kSums] = {};
  const Vector factors = factor - Vector{};
  const Vector addends = addend - Vector{};
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      sums[i] = sums[i] * factors + addends;
    }
  }
  for (const Vector& sum : sums) {
    *out += sum[0];
  }
}

}  // namespace

double MeasurePeakFlops() {
  using Clock = std::chrono::steady_clock;
  float sink = 0;
  double best_seconds = 1e9;
  const auto end = Clock::now() + std::chrono::milliseconds(200);
  while (Clock::now() < end) {
    const auto start = Clock::now();
    MultiplyAdd(0.999F, 0.001F, &sink);
    best_seconds =
        std::min(best_seconds, std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double flops = 2.0 * kLanes * kSums * kRounds;
  return sink == 0 ? 0 : flops / best_seconds;
}

}  // namespace bouquet::rose::cpu
