#pragma once

#include <cstdint>
#include <utility>

#include "rose/backend/cpu/bf16.h"
#include "rose/backend/cpu/cpu_features.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

// The vector type that every kernel is written against, once for all instruction sets: the
// compiler's portable vectors, wide as the registers of `kIsa`, with an intrinsic where the
// compiler does not find the instruction by itself.
//
// A file that includes this is compiled with the flags of one Isa. Everything here is a template
// over that Isa, so that no function compiled for one instruction set can be linked into the code
// of another; for the same reason kernels call no inline function of the standard library.

#define BOUQUET_INLINE [[gnu::always_inline]] static inline

namespace bouquet::rose::cpu {

constexpr int LaneCount(Isa isa) {
  switch (isa) {
    case Isa::kPlain: return 4;
    case Isa::kAvx2: return 8;
    case Isa::kAvx512:
    case Isa::kAvx512Bf16: return 16;
  }
  return 4;
}

// The compiler's vector types by their number of lanes.
template <int kLanes>
struct VectorsOf;
template <>
struct VectorsOf<4> {
  using Float [[gnu::vector_size(16)]] = float;
  using Bits [[gnu::vector_size(16)]] = uint32_t;
  using Short [[gnu::vector_size(8)]] = uint16_t;
};
template <>
struct VectorsOf<8> {
  using Float [[gnu::vector_size(32)]] = float;
  using Bits [[gnu::vector_size(32)]] = uint32_t;
  using Short [[gnu::vector_size(16)]] = uint16_t;
};
template <>
struct VectorsOf<16> {
  using Float [[gnu::vector_size(64)]] = float;
  using Bits [[gnu::vector_size(64)]] = uint32_t;
  using Short [[gnu::vector_size(32)]] = uint16_t;
};

template <Isa kIsa>
struct Lanes {
  static constexpr int kWidth = LaneCount(kIsa);
  using Float = typename VectorsOf<kWidth>::Float;
  using Bits = typename VectorsOf<kWidth>::Bits;  // unsigned: they wrap without a warning
  using Short = typename VectorsOf<kWidth>::Short;

  // x − 0 and not x + 0: only the former is x for every x, so that it costs nothing.
  BOUQUET_INLINE Float Broadcast(float x) { return x - Float{}; }
  BOUQUET_INLINE Bits BroadcastBits(uint32_t x) { return Bits{} + x; }

  BOUQUET_INLINE Float AsFloat(Bits x) {
    Float y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
  }
  BOUQUET_INLINE Bits AsBits(Float x) {
    Bits y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
  }

  // --- loads and stores; any alignment ---
  BOUQUET_INLINE Float Load(const float* p) {
    Float x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  BOUQUET_INLINE Float Load(const Bf16* p) {
    Short x;
    __builtin_memcpy(&x, p, sizeof x);
    return AsFloat(__builtin_convertvector(x, Bits) << 16);
  }
  BOUQUET_INLINE void Store(float* p, Float x) { __builtin_memcpy(p, &x, sizeof x); }
  BOUQUET_INLINE void Store(Bf16* p, Float x) {
    const Short bits = RoundToBf16(x);
    __builtin_memcpy(p, &bits, sizeof bits);
  }

  /// Asks for `count` elements that are needed soon.
  template <class T>
  BOUQUET_INLINE void Prefetch(const T* p, int64_t count) {
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t i = 0; i < count; i += kLine) {
      __builtin_prefetch(p + i);
    }
  }

  /// The first `count` lanes, the others 0. count: 1..kWidth.
  template <class T>
  BOUQUET_INLINE Float LoadFirst(const T* p, int64_t count) {
    if (count >= kWidth) {
      return Load(p);
    }
    T buffer[kWidth] = {};
    for (int64_t i = 0; i < count; ++i) {
      buffer[i] = p[i];
    }
    return Load(buffer);
  }
  template <class T>
  BOUQUET_INLINE void StoreFirst(T* p, Float x, int64_t count) {
    if (count >= kWidth) {
      Store(p, x);
      return;
    }
    T buffer[kWidth];
    Store(buffer, x);
    for (int64_t i = 0; i < count; ++i) {
      p[i] = buffer[i];
    }
  }
  /// Lanes count.. become `filler`.
  BOUQUET_INLINE Float KeepFirst(Float x, int64_t count, float filler) {
    if (count >= kWidth) {
      return x;
    }
    float buffer[kWidth];
    Store(buffer, x);
    for (int64_t i = count; i < kWidth; ++i) {
      buffer[i] = filler;
    }
    return Load(buffer);
  }

  // --- arithmetic ---
  /// Per lane, `b` where either is NaN.
  BOUQUET_INLINE Float Max(Float a, Float b) {
#if defined(__AVX512F__)
    if constexpr (kWidth == 16) {
      return _mm512_mask_max_ps(a, 0xFFFF, a, b);
    }
#endif
    return a > b ? a : b;
  }
  BOUQUET_INLINE Float Min(Float a, Float b) {
#if defined(__AVX512F__)
    if constexpr (kWidth == 16) {
      return _mm512_mask_min_ps(a, 0xFFFF, a, b);
    }
#endif
    return a < b ? a : b;
  }
  /// Of all lanes, the upper half added to the lower until one is left.
  BOUQUET_INLINE float Sum(Float x) {
    if constexpr (kWidth > 8) {
      x += Down<8>(x, kLanes);
    }
    if constexpr (kWidth > 4) {
      x += Down<4>(x, kLanes);
    }
    x += Down<2>(x, kLanes);
    x += Down<1>(x, kLanes);
    return x[0];
  }
  BOUQUET_INLINE float Largest(Float x) {
    if constexpr (kWidth > 8) {
      x = Max(x, Down<8>(x, kLanes));
    }
    if constexpr (kWidth > 4) {
      x = Max(x, Down<4>(x, kLanes));
    }
    x = Max(x, Down<2>(x, kLanes));
    x = Max(x, Down<1>(x, kLanes));
    return x[0];
  }

  // --- shuffles ---
  /// rows[i][j] becomes rows[j][i].
  BOUQUET_INLINE void Transpose(Float (&rows)[kWidth]) {
    ExchangeAll<1>(rows);
    ExchangeAll<2>(rows);
    if constexpr (kWidth > 4) {
      ExchangeAll<4>(rows);
    }
    if constexpr (kWidth > 8) {
      ExchangeAll<8>(rows);
    }
  }

  // --- bfloat16 ---
  /// Nearest, ties to even; a NaN stays a NaN.
  BOUQUET_INLINE Short RoundToBf16(Float x) {
#if defined(__AVX512BF16__)
    if constexpr (kIsa == Isa::kAvx512Bf16) {
      Short y;
      const __m256bh bits = _mm512_cvtneps_pbh(x);
      __builtin_memcpy(&y, &bits, sizeof y);
      return y;
    }
#endif
    const Bits bits = AsBits(x);
    const Bits odd = (bits >> 16) & 1U;
    const Bits rounded = ((bits + 0x7FFFU + odd) >> 16) & 0xFFFFU;
    const Bits quiet = ((bits >> 16) | 0x40U) & 0xFFFFU;
    const Bits chosen = (bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded;
    return __builtin_convertvector(chosen, Short);
  }
  /// sum + a₀·b₀ + a₁·b₁ per lane, where a lane of `a` and of `b` is a pair of bfloat16.
  BOUQUET_INLINE Float DotPairs(Float sum, Bits a, Bits b) {
#if defined(__AVX512BF16__)
    if constexpr (kIsa == Isa::kAvx512Bf16) {
      __m512bh x;
      __m512bh y;
      __builtin_memcpy(&x, &a, sizeof x);
      __builtin_memcpy(&y, &b, sizeof y);
      return _mm512_dpbf16_ps(sum, x, y);
    }
#endif
    sum += AsFloat(a << 16) * AsFloat(b << 16);
    return sum + AsFloat(a & 0xFFFF0000U) * AsFloat(b & 0xFFFF0000U);
  }

 private:
  static constexpr std::make_integer_sequence<int, kWidth> kLanes{};

  /// Lane i + kDistance in lane i.
  template <int kDistance, int... kLane>
  BOUQUET_INLINE Float Down(Float x, std::integer_sequence<int, kLane...> /*lanes*/) {
    return __builtin_shufflevector(x, x, ((kLane + kDistance) % kWidth)...);
  }
  /// Exchanges the lanes of a with bit kDistance for those of b without it.
  template <int kDistance, int... kLane>
  BOUQUET_INLINE void Exchange(Float& a, Float& b, std::integer_sequence<int, kLane...> /*lanes*/) {
    const Float x = a;
    const Float y = b;
    a = __builtin_shufflevector(x, y,
                                ((kLane & kDistance) != 0 ? kWidth + kLane - kDistance : kLane)...);
    b = __builtin_shufflevector(x, y,
                                ((kLane & kDistance) != 0 ? kWidth + kLane : kLane + kDistance)...);
  }
  template <int kDistance>
  BOUQUET_INLINE void ExchangeAll(Float (&rows)[kWidth]) {
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) {
      if ((i & kDistance) == 0) {
        Exchange<kDistance>(rows[i], rows[i + kDistance], kLanes);
      }
    }
  }
};

}  // namespace bouquet::rose::cpu
