#pragma once

#include <cstdint>

#include "rose/backend/cuda/attention/attention_shape.h"

namespace bouquet::rose::cuda {

/// Which keys a query sees, as one half-open range: masks and windows are nothing else here.
struct VisibleKeys {
  bool causal = false;
  int32_t window = INT32_MAX;  // |i − j| ≤ window

  static VisibleKeys Of(const AttentionShape& shape) {
    return {shape.mask == AttentionMask::kCausal, shape.window > 0 ? shape.window : INT32_MAX};
  }
  __device__ int32_t Begin(int32_t row) const { return row > window ? row - window : 0; }
  __device__ int32_t End(int32_t row, int32_t length) const {
    const int32_t after = causal ? 0 : window;
    return after < length - row ? row + after + 1 : length;
  }
};

}  // namespace bouquet::rose::cuda
