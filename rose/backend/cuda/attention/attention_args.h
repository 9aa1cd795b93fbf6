#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace bouquet::rose::cuda {

/// One launch. q, k and v may lie side by side in one matrix. Elements are bfloat16.
struct AttentionArgs {
  const __nv_bfloat16* q = nullptr;  // [num_tokens, num_heads, head_dim], rows `row_stride` apart
  const __nv_bfloat16* k = nullptr;  // [num_tokens, num_kv_heads, head_dim], likewise
  const __nv_bfloat16* v = nullptr;
  int64_t row_stride = 0;                     // in elements, of q, k and v
  __nv_bfloat16* out = nullptr;               // [num_tokens, num_heads · head_dim], dense
  const int32_t* sequence_offsets = nullptr;  // device, [num_sequences + 1]; after the last real
                                              // sequence its end is repeated
  float scale = 0;
  const float* relative_bias = nullptr;  // device: of head 0 at distance 0, where the shape has one
  int64_t relative_bias_stride = 0;      // in elements, from head to head
  int32_t max_distance = 0;              // distances beyond count as ±max_distance
};

}  // namespace bouquet::rose::cuda
