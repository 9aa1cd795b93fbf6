#pragma once

#include <utility>

#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/lane_math.h"
#include "rose/backend/cpu/lanes.h"

// x · Wᵀ with W in panels: a tile of up to kTileRows rows by two registers of columns stays in
// registers over the whole inner dimension, so each weight is loaded once per tile and each x is
// broadcast once. The order of the sums does not depend on how many rows a step has: a row's result
// is the same bits alone and in any batch.

namespace bouquet::rose::cpu {

template <class V>
struct Tile {
  using Float = typename V::Float;
  static constexpr int kColumns = 2 * V::kWidth;
  // 8 · 2 sums, 2 weights and a broadcast of 32 registers, or 6 · 2 and 3 of 16. 12 rows would fit
  // the 32 as well, but not their addresses into the general registers: 94 % of peak against 98 %.
  static constexpr int kMaxRows = V::kWidth == 16 ? 8 : 6;

  // How far ahead of its use a streamed weight is asked for, in bytes: 0.3 µs of a full tile. A
  // processor's own prefetcher keeps up with tiles of few rows, which only read, and not with full
  // ones: 8 rows of 384 x 1152 took 79 GFLOP/s without and 96 with it, in bfloat16 104 and 195.
  static constexpr int64_t kPrefetchBytes = 16384;

  template <int kRows, bool kStreamed, class T>
  BOUQUET_INLINE void PrefetchWeights(const T* w) {
    if constexpr (kStreamed && kRows > kMaxRows - 2) {
      const char* ahead = reinterpret_cast<const char*>(w) + kPrefetchBytes;
      constexpr int64_t kLine = 64;
#pragma GCC unroll 2
      for (int64_t i = 0; i < int64_t{sizeof(float)} * kColumns; i += kLine) {
        __builtin_prefetch(ahead + i, /*rw=*/0, /*locality=*/2);
      }
    }
  }

  /// tile[r][·] = Σ_k x[r][k] · w[k][·] in float32. x rows `x_stride` apart, w rows `w_stride`.
  /// kStreamed: w comes from memory, row after row.
  template <int kRows, bool kStreamed>
  BOUQUET_INLINE void Multiply(const float* x, int64_t x_stride, const float* w, int64_t w_stride,
                               int64_t count, float* tile, int64_t tile_stride) {
    Float left[kRows] = {};
    Float right[kRows] = {};
    for (int64_t k = 0; k < count; ++k) {
      const Float w_left = V::Load(w);
      const Float w_right = V::Load(w + V::kWidth);
      PrefetchWeights<kRows, kStreamed>(w);
      w += w_stride;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Float value = V::Broadcast(x[r * x_stride + k]);
        left[r] += value * w_left;
        right[r] += value * w_right;
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      V::Store(tile + r * tile_stride, left[r]);
      V::Store(tile + r * tile_stride + V::kWidth, right[r]);
    }
  }

  /// The same in bfloat16: w holds pairs of rows interleaved, [count / 2][columns][2].
  template <int kRows, bool kStreamed>
  BOUQUET_INLINE void Multiply(const Bf16* x, int64_t x_stride, const Bf16* w, int64_t w_stride,
                               int64_t count, float* tile, int64_t tile_stride) {
    Float left[kRows] = {};
    Float right[kRows] = {};
    const auto step = [&](auto load_pair, int64_t k) __attribute__((always_inline)) {
      typename V::Bits w_left;
      typename V::Bits w_right;
      __builtin_memcpy(&w_left, w, sizeof w_left);
      __builtin_memcpy(&w_right, w + kColumns, sizeof w_right);
      PrefetchWeights<kRows, kStreamed>(w);
      w += 2 * w_stride;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const typename V::Bits value = V::BroadcastBits(load_pair(x + r * x_stride + k));
        left[r] = V::DotPairs(left[r], value, w_left);
        right[r] = V::DotPairs(right[r], value, w_right);
      }
    };
    const auto both = [](const Bf16* pair) __attribute__((always_inline)) {
      uint32_t bits;
      __builtin_memcpy(&bits, pair, sizeof bits);
      return bits;
    };
    const auto last = [](const Bf16* single) __attribute__((always_inline)) {
      return static_cast<uint32_t>(single->bits);
    };
    int64_t k = 0;
    for (; k + 2 <= count; k += 2) {
      step(both, k);
    }
    if (k < count) {
      step(last, k);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      V::Store(tile + r * tile_stride, left[r]);
      V::Store(tile + r * tile_stride + V::kWidth, right[r]);
    }
  }

  template <int kRows, bool kStreamed, class T>
  [[gnu::noinline]] static void MultiplyRows(const T* x, int64_t x_stride, const T* w,
                                             int64_t w_stride, int64_t count, float* tile,
                                             int64_t tile_stride) {
    Multiply<kRows, kStreamed>(x, x_stride, w, w_stride, count, tile, tile_stride);
  }

  /// As Multiply, with the number of rows chosen at run time: 1..kMaxRows.
  template <bool kStreamed, class T>
  BOUQUET_INLINE void MultiplyUpTo(int64_t rows, const T* x, int64_t x_stride, const T* w,
                                   int64_t w_stride, int64_t count, float* tile,
                                   int64_t tile_stride) {
    const auto multiply = [&]<int... kFewer>(std::integer_sequence<int, kFewer...>)
        __attribute__((always_inline)) {  // full tiles first
      return (
          (rows == kMaxRows - kFewer && (MultiplyRows<kMaxRows - kFewer, kStreamed>(
                                             x, x_stride, w, w_stride, count, tile, tile_stride),
                                         true)) ||
          ...);
    };
    if (!multiply(std::make_integer_sequence<int, kMaxRows>())) {
      __builtin_trap();
    }
  }
};

template <class V, class T>
struct GemmKernel {
  using Float = typename V::Float;
  static constexpr int kColumns = Tile<V>::kColumns;
  static constexpr int kMaxRows = Tile<V>::kMaxRows;

  template <Activation kActivation, bool kGated>
  static void Epilogue(const GemmArgs& args, const float* tile, int64_t row, int64_t rows,
                       int64_t panel) {
    constexpr int64_t kOutColumns = kGated ? V::kWidth : kColumns;
    const float* bias = args.bias == nullptr ? nullptr : args.bias + panel * kColumns;
    const int64_t column = panel * kOutColumns;
    for (int64_t r = 0; r < rows; ++r) {
      T* out = static_cast<T*>(args.out) + (row + r) * args.out_stride + column;
      const T* residual = args.residual == nullptr ? nullptr
                                                   : static_cast<const T*>(args.residual) +
                                                         (row + r) * args.residual_stride + column;
      for (int64_t i = 0; i < kOutColumns && column + i < args.out_features; i += V::kWidth) {
        const int64_t left = args.out_features - column - i;
        Float y = V::Load(tile + r * kColumns + i);
        if (bias != nullptr) {
          y += V::Load(bias + i);
        }
        y = Activate<V, kActivation>(y);
        if constexpr (kGated) {
          Float up = V::Load(tile + r * kColumns + V::kWidth);
          if (bias != nullptr) {
            up += V::Load(bias + V::kWidth);
          }
          y = y * up;
        }
        if (residual != nullptr) {
          y += V::LoadFirst(residual + i, left);
        }
        V::StoreFirst(out + i, y, left);
      }
    }
  }

  template <Activation kActivation>
  BOUQUET_INLINE void EpilogueOf(const GemmArgs& args, const float* tile, int64_t row, int64_t rows,
                                 int64_t panel) {
    if (args.gated) {
      Epilogue<kActivation, true>(args, tile, row, rows, panel);
    } else {
      Epilogue<kActivation, false>(args, tile, row, rows, panel);
    }
  }

  static void Finish(const GemmArgs& args, const float* tile, int64_t row, int64_t rows,
                     int64_t panel) {
    switch (args.activation) {
      case Activation::kNone: EpilogueOf<Activation::kNone>(args, tile, row, rows, panel); return;
      case Activation::kGelu: EpilogueOf<Activation::kGelu>(args, tile, row, rows, panel); return;
      case Activation::kGeluTanh:
        EpilogueOf<Activation::kGeluTanh>(args, tile, row, rows, panel);
        return;
      case Activation::kRelu: EpilogueOf<Activation::kRelu>(args, tile, row, rows, panel); return;
      case Activation::kSilu: EpilogueOf<Activation::kSilu>(args, tile, row, rows, panel); return;
      case Activation::kTanh: EpilogueOf<Activation::kTanh>(args, tile, row, rows, panel); return;
      case Activation::kSigmoid:
        EpilogueOf<Activation::kSigmoid>(args, tile, row, rows, panel);
        return;
    }
  }

  /// What Finish will touch: it would wait for these lines, but the product takes long enough to
  /// fetch them.
  BOUQUET_INLINE void PrefetchResults(const GemmArgs& args, int64_t row, int64_t rows,
                                      int64_t panel) {
    const int64_t columns = args.gated ? V::kWidth : kColumns;
    for (int64_t r = row; r < row + rows; ++r) {
      V::Prefetch(static_cast<const T*>(args.out) + r * args.out_stride + panel * columns, columns);
      if (args.residual != nullptr) {
        V::Prefetch(
            static_cast<const T*>(args.residual) + r * args.residual_stride + panel * columns,
            columns);
      }
    }
  }

  static void Block(const GemmArgs& args, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                    int64_t panel_end) {
    // bfloat16 panels hold whole pairs of rows.
    constexpr int64_t kRowsPerStep = sizeof(T) == 2 ? 2 : 1;
    const int64_t panel_rows = (args.in_features + kRowsPerStep - 1) / kRowsPerStep * kRowsPerStep;
    alignas(64) float tile[kMaxRows * kColumns];
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      const T* w = static_cast<const T*>(args.panels) + panel * panel_rows * kColumns;
      for (int64_t row = row_begin; row < row_end; row += kMaxRows) {
        const int64_t rows = row_end - row < kMaxRows ? row_end - row : kMaxRows;
        const T* x = static_cast<const T*>(args.x) + row * args.x_stride;
        PrefetchResults(args, row, rows, panel);
        Tile<V>::template MultiplyUpTo<true>(rows, x, args.x_stride, w, kColumns, args.in_features,
                                             tile, kColumns);
        Finish(args, tile, row, rows, panel);
      }
    }
  }
};

}  // namespace bouquet::rose::cpu
