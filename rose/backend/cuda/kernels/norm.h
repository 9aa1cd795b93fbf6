#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

/// The widest row that these kernels hold in registers.
inline constexpr int64_t kMaxNormWidth = 8192;

/// out[row] = norm(x[row] + residual[row]), see NormDesc; sums in f32. Strides in elements.
struct NormArgs {
  const __nv_bfloat16* x = nullptr;  // [rows, width]
  int64_t x_stride = 0;
  const __nv_bfloat16* residual = nullptr;  // or null
  int64_t residual_stride = 0;
  __nv_bfloat16* sum = nullptr;  // or null; may be x or residual
  int64_t sum_stride = 0;
  __nv_bfloat16* out = nullptr;  // may be x
  int64_t out_stride = 0;
  int64_t rows = 0;
  int64_t width = 0;  // ≤ kMaxNormWidth
  NormKind kind = NormKind::kLayerNorm;
  const float* gain = nullptr;  // [width]
  const float* bias = nullptr;  // [width] or null
  float epsilon = 0;
};
void LaunchNorm(const NormArgs& args, cudaStream_t stream);

/// out[t] = norm(word[id] + position[pos + offset] + type[type]), see EmbeddingDesc. Ids are in
/// range: the engine's door has checked them.
struct EmbedArgs {
  const int32_t* token_ids = nullptr;         // [tokens]
  const int32_t* positions = nullptr;         // [tokens]
  const int32_t* token_type_ids = nullptr;    // [tokens], or null: all 0
  const __nv_bfloat16* word = nullptr;        // [vocabulary_rows, width], dense
  const __nv_bfloat16* position = nullptr;    // [position rows, width] or null
  const __nv_bfloat16* token_type = nullptr;  // [token_types, width] or null
  int32_t position_offset = 0;
  __nv_bfloat16* out = nullptr;  // [tokens, width]
  int64_t out_stride = 0;
  int64_t tokens = 0;
  int64_t width = 0;  // ≤ kMaxNormWidth
  NormKind kind = NormKind::kNone;
  const float* gain = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
};
void LaunchEmbed(const EmbedArgs& args, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
