#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "rose/tensor/dtype.h"

namespace bouquet::rose::cuda {

/// Converts rows between float32, float16 and bfloat16 while loading: source [rows, cols] dense,
/// target rows `target_stride` elements apart (rows of a gated layer are laid between each other).
/// Rounds to nearest, ties to even.
struct ConvertArgs {
  const void* source = nullptr;
  Dtype from = Dtype::kFloat32;
  void* target = nullptr;
  Dtype to = Dtype::kBfloat16;
  int64_t target_stride = 0;
  int64_t rows = 0;
  int64_t cols = 0;
};
void LaunchConvert(const ConvertArgs& args, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
