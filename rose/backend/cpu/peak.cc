#include "rose/backend/cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bouquet::rose::cpu {
namespace {

constexpr int kRounds = 2'000;

// An alias in a template would lose the attribute.
struct Lanes4 {
  using Vector [[gnu::vector_size(16)]] = float;
};
struct Lanes8 {
  using Vector [[gnu::vector_size(32)]] = float;
};
struct Lanes16 {
  using Vector [[gnu::vector_size(64)]] = float;
};

/// `kSums` vectors: more than latency times issue width of any core we know, and no more than there
/// are registers.
template <class Lanes, int kSums>
[[gnu::always_inline]] inline double MultiplyAddVectors(float* sink) {
  using Vector = typename Lanes::Vector;
  Vector sums[kSums];
  for (int i = 0; i < kSums; ++i) {  // all different, or they would be computed once
    sums[i] = (*sink + static_cast<float>(i)) - Vector{};
  }
  const Vector factors = 0.999F - Vector{};
  const Vector addends = 0.001F - Vector{};
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      sums[i] = sums[i] * factors + addends;
    }
  }
  for (const Vector& sum : sums) {
    *sink += sum[0];
  }
  constexpr size_t kLanes = sizeof(Vector) / sizeof(float);
  return 2.0 * kLanes * kSums * kRounds;
}

double MultiplyAddPlain(float* sink) { return MultiplyAddVectors<Lanes4, 12>(sink); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] double MultiplyAddAvx2(float* sink) {
  return MultiplyAddVectors<Lanes8, 12>(sink);
}
[[gnu::target("avx512f")]] double MultiplyAddAvx512(float* sink) {
  return MultiplyAddVectors<Lanes16, 16>(sink);
}

[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] double MultiplyAddBfloat16(float* sink) {
  constexpr int kSums = 16;
  constexpr int kPairs = 16;
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) {
    sums[i] = _mm512_set1_ps(*sink + static_cast<float>(i));
  }
  const __m512bh factors = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.25F), _mm512_set1_ps(0.001F));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], factors, factors);
    }
  }
  for (const __m512& sum : sums) {
    *sink += _mm512_cvtss_f32(sum);
  }
  return 2.0 * 2 * kPairs * kSums * kRounds;
}
#endif

}  // namespace

double MultiplyAdd(Isa isa, Dtype dtype, float* sink) {
#if defined(__x86_64__)
  if (dtype == Dtype::kBfloat16) {
    return isa == Isa::kAvx512Bf16 ? MultiplyAddBfloat16(sink) : 0;
  }
  switch (isa) {
    case Isa::kPlain: return MultiplyAddPlain(sink);
    case Isa::kAvx2: return MultiplyAddAvx2(sink);
    case Isa::kAvx512:
    case Isa::kAvx512Bf16: return MultiplyAddAvx512(sink);
  }
#endif
  return dtype == Dtype::kFloat32 ? MultiplyAddPlain(sink) : 0;
}

double MeasurePeakFlops(Isa isa, Dtype dtype) {
  using Clock = std::chrono::steady_clock;
  float sink = 0;
  double best = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(200);
  while (Clock::now() < end) {
    const auto start = Clock::now();
    const double flops = MultiplyAdd(isa, dtype, &sink);
    const std::chrono::duration<double> took = Clock::now() - start;
    best = std::max(best, flops / took.count());
  }
  return sink == 0 ? 0 : best;
}

}  // namespace bouquet::rose::cpu
