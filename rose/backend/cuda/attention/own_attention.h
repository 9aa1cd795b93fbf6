#pragma once

#include <cuda_runtime.h>

#include "rose/backend/cuda/attention/attention_args.h"
#include "rose/backend/cuda/attention/attention_plan.h"
#include "rose/backend/cuda/attention/attention_shape.h"

namespace bouquet::rose::cuda {

/// Allows the shared memory that the kernels need. Called while loading, once per device.
cudaError_t PrepareTensorCoreAttention();

/// Tensor cores; head_dim 32, 64 or 128; q, k, v and their rows aligned to 16 bytes. Reads no row
/// outside the sequence of its tile.
cudaError_t LaunchTensorCoreAttention(const AttentionShape& shape, const AttentionSizes& sizes,
                                      const AttentionArgs& args, const TileList& tiles,
                                      cudaStream_t stream);

/// Plain arithmetic for every head_dim up to kPlainMaxHeadDim, slow. Reads no row outside either.
constexpr int32_t kPlainMaxHeadDim = 256;
cudaError_t LaunchPlainAttention(const AttentionShape& shape, const AttentionArgs& args,
                                 const TileList& tiles, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
