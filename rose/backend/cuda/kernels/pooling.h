#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

inline constexpr int32_t kMaxPoolingModes = 6;
inline constexpr int64_t kMaxPooledRows = 65'535;

/// See PoolingDesc. A range of a sequence without tokens (padding) and a sum over none give zeros.
struct PoolingArgs {
  const __nv_bfloat16* hidden = nullptr;  // [tokens, width]
  int64_t hidden_stride = 0;
  const PoolingRange* ranges = nullptr;  // [rows]
  float* out = nullptr;                  // [rows, num_modes · width]
  int64_t out_stride = 0;
  int64_t rows = 0;
  int64_t width = 0;
  int32_t num_modes = 0;
  PoolingMode modes[kMaxPoolingModes] = {};
};
void LaunchPooling(const PoolingArgs& args, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
