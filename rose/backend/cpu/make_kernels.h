#pragma once

#include "rose/backend/cpu/attention_kernel.h"
#include "rose/backend/cpu/gemm_kernel.h"
#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/norm_kernel.h"
#include "rose/backend/cpu/pooling_kernel.h"

// Included by exactly one file per instruction set.

namespace bouquet::rose::cpu {

template <Isa kIsa, class T>
constexpr Kernels MakeKernels() {
  using V = Lanes<kIsa>;
  Kernels kernels;
  kernels.panel_columns = Tile<V>::kColumns;
  kernels.tile_rows = Tile<V>::kMaxRows;
  kernels.norm = &NormKernel<V, T>::Rows;
  kernels.embed = &EmbeddingKernel<V, T>::Rows;
  kernels.gemm = &GemmKernel<V, T>::Block;
  kernels.rotate = &RotateKernel<V, T>::Tokens;
  kernels.attention = &AttentionKernel<V, T>::Queries;
  kernels.pool = &PoolingKernel<V, T>::Sequence;
  return kernels;
}

template <Isa kIsa>
const Kernels& TableFor(Dtype dtype) {
  static constexpr Kernels kFloat = MakeKernels<kIsa, float>();
  static constexpr Kernels kBf16 = MakeKernels<kIsa, Bf16>();
  return dtype == Dtype::kBfloat16 ? kBf16 : kFloat;
}

}  // namespace bouquet::rose::cpu
