#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "model/output_spec.h"
#include "rose/backend/op_desc.h"
#include "rose/step_result.h"

// What happens to the few float32 rows after pooling.

namespace bouquet::rose::cuda {

/// out = act(x · weightᵀ + bias) + residual, all float32.
struct GemmRowsArgs {
  const float* x = nullptr;  // [rows, in_features]
  int64_t x_stride = 0;
  const float* weight = nullptr;  // [out_features, in_features]
  int64_t weight_stride = 0;
  const float* bias = nullptr;      // [out_features] or null
  const float* residual = nullptr;  // [rows, out_features] or null; may be `out`
  int64_t residual_stride = 0;
  float* out = nullptr;  // [rows, out_features]
  int64_t out_stride = 0;
  int64_t rows = 0;
  int64_t in_features = 0;
  int64_t out_features = 0;
  Activation activation = Activation::kNone;
};
void LaunchGemmRows(const GemmRowsArgs& args, cudaStream_t stream);

/// x / max(‖x‖₂, 1e-12) in place; sums in f64.
void LaunchNormalizeRows(float* x, int64_t stride, int64_t rows, int64_t width,
                         cudaStream_t stream);

/// Cuts row i to dimensions[i], scales it to unit length if normalize[i], writes it as dtypes[i] to
/// the front of its slot with zeros behind it, and says whether all that was left is finite; a row
/// that is not becomes zeros.
struct FinishRowsArgs {
  const float* x = nullptr;  // [rows, width]
  int64_t x_stride = 0;
  const int32_t* dimensions = nullptr;      // [rows], 1..width; of sign bits a multiple of 8
  const model::RowDtype* dtypes = nullptr;  // [rows]
  const uint8_t* normalize = nullptr;       // [rows]
  std::byte* slots = nullptr;               // [rows, 4 · width] at an address divisible by 16
  RowStatus* statuses = nullptr;            // [rows]
  int64_t rows = 0;
  int64_t width = 0;
};
void LaunchFinishRows(const FinishRowsArgs& args, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
