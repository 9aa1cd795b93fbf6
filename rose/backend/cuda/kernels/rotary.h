#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace bouquet::rose::cuda {

inline constexpr int32_t kMaxRotaryHeadDim = 256;

/// Head sizes that LaunchRotary takes: multiples of 4, above 128 of 8.
constexpr bool CanRotate(int32_t head_dim) {
  return head_dim > 0 && head_dim <= kMaxRotaryHeadDim && head_dim % (head_dim > 128 ? 8 : 4) == 0;
}

/// Cosine and sine of position · θ^(−2i/head_dim) for every token of a step: once a step, since
/// every layer needs the same.
struct RotationsArgs {
  float2* rotations = nullptr;         // [tokens, head_dim / 2]
  const int32_t* positions = nullptr;  // [tokens]
  int64_t tokens = 0;
  int32_t head_dim = 0;
  /// θ^(−2i/head_dim). By value: it goes with the launch, so that no step waits for a copy.
  float frequencies[kMaxRotaryHeadDim / 2] = {};
};
void LaunchRotations(const RotationsArgs& args, cudaStream_t stream);

/// RMSNorm per head, then the rotary embedding (RopeDesc), in place on the query and key heads of a
/// token; either may be absent. Queries first, then keys, in one row.
struct RotaryArgs {
  __nv_bfloat16* qkv = nullptr;  // [tokens, row_stride]
  int64_t row_stride = 0;
  int64_t tokens = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  const float* query_gain = nullptr;  // [head_dim] or null: no norm
  const float* key_gain = nullptr;
  float query_epsilon = 0;
  float key_epsilon = 0;
  const float2* rotations = nullptr;  // [tokens, head_dim / 2] or null: no rotation
};
void LaunchRotary(const RotaryArgs& args, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
