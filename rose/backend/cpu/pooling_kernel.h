#pragma once

#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/lanes.h"

// One row from the tokens of one sequence, in float32: column blocks outside, tokens inside, so
// that the running value stays in registers and every hidden row is read once.

namespace bouquet::rose::cpu {

template <class V, class T>
struct PoolingKernel {
  using Float = typename V::Float;

  BOUQUET_INLINE void CopyRow(const PoolArgs& args, int64_t token) {
    const T* row = static_cast<const T*>(args.hidden) + token * args.hidden_stride;
    for (int64_t i = 0; i < args.width; i += V::kWidth) {
      V::StoreFirst(args.out + i, V::LoadFirst(row + i, args.width - i), args.width - i);
    }
  }

  /// Σ weight(token) · h, times `scale`, or the maximum.
  template <PoolingMode kMode>
  BOUQUET_INLINE void Reduce(const PoolArgs& args, float scale) {
    const T* first = static_cast<const T*>(args.hidden) + args.start * args.hidden_stride;
    for (int64_t i = 0; i < args.width; i += V::kWidth) {
      const int64_t left = args.width - i;
      const T* row = first + i;
      Float value = V::LoadFirst(row, left);
      if constexpr (kMode == PoolingMode::kWeightedMean) {
        value = value * static_cast<float>(args.start + 1);
      }
      for (int64_t token = args.start + 1; token < args.length; ++token) {
        row += args.hidden_stride;
        const Float next = V::LoadFirst(row, left);
        if constexpr (kMode == PoolingMode::kMax) {
          // A NaN on either side must survive: it marks the row as not finite.
          value = value > next ? value : (next == next ? (value == value ? next : value) : next);
        } else if constexpr (kMode == PoolingMode::kWeightedMean) {
          value += next * static_cast<float>(token + 1);
        } else {
          value += next;
        }
      }
      V::StoreFirst(args.out + i, value * scale, left);
    }
  }

  static void Sequence(const PoolArgs& args) {
    const float count = static_cast<float>(args.length - args.start);
    const bool has_counted_token = args.start < args.length || args.mode == PoolingMode::kCls ||
                                   args.mode == PoolingMode::kLastToken;
    if (!has_counted_token) {  // the reference divides a sum of nothing by 1e-9: zero
      __builtin_memset(args.out, 0, sizeof(float) * args.width);
      return;
    }
    switch (args.mode) {
      case PoolingMode::kCls: CopyRow(args, 0); return;
      case PoolingMode::kLastToken: CopyRow(args, args.length - 1); return;
      case PoolingMode::kMax: Reduce<PoolingMode::kMax>(args, 1.0F); return;
      case PoolingMode::kMean: Reduce<PoolingMode::kMean>(args, 1.0F / count); return;
      case PoolingMode::kMeanSqrtLength:
        Reduce<PoolingMode::kMean>(args, 1.0F / __builtin_sqrtf(count));
        return;
      case PoolingMode::kWeightedMean: {
        const float first = static_cast<float>(args.start + 1);
        const float last = static_cast<float>(args.length);
        Reduce<PoolingMode::kWeightedMean>(args, 2.0F / ((first + last) * count));
        return;
      }
    }
  }
};

}  // namespace bouquet::rose::cpu
