#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

/// What follows a product: out = act(in) + residual, or, gated, act(in[2i]) · in[2i + 1] + residual
/// (a gated layer is packed so that gate and up lie side by side). bfloat16, computed in f32.
struct ActivationArgs {
  const __nv_bfloat16* in = nullptr;  // [rows, width], or [rows, 2 · width] when gated
  int64_t in_stride = 0;
  const __nv_bfloat16* residual = nullptr;  // [rows, width] or null
  int64_t residual_stride = 0;
  __nv_bfloat16* out = nullptr;  // [rows, width]; may be `in` unless gated, or `residual`
  int64_t out_stride = 0;
  int64_t rows = 0;
  int64_t width = 0;
  Activation activation = Activation::kNone;
  bool gated = false;
};
void LaunchActivation(const ActivationArgs& args, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
