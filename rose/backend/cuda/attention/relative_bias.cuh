#pragma once

#include <cstdint>

#include "rose/backend/cuda/attention/attention_args.h"

namespace bouquet::rose::cuda {

/// What distance adds to the scores of one head. Its row is a kilobyte, which the first-level cache
/// holds.
struct HeadBias {
  const float* at_zero;  // null: nothing
  int32_t max_distance;

  __device__ static HeadBias Of(const AttentionArgs& args, int32_t head) {
    if (args.relative_bias == nullptr) {
      return {nullptr, 0};
    }
    return {args.relative_bias + head * args.relative_bias_stride, args.max_distance};
  }
  /// distance: key − query; may be any.
  __device__ __forceinline__ float At(int32_t distance) const {
    return __ldg(at_zero + max(-max_distance, min(distance, max_distance)));
  }
};

}  // namespace bouquet::rose::cuda
