#pragma once

#include <cuda_runtime.h>

#include "rose/backend/cuda/attention/attention_args.h"
#include "rose/backend/cuda/attention/attention_plan.h"
#include "rose/backend/cuda/attention/attention_shape.h"

namespace bouquet::rose::cuda {

/// FlashInfer's FA3 template (wgmma and TMA) for head_dim 64 and 128, causal or not, no window; key
/// steps of 128. With `persistent` one CTA per SM walks the tiles, else each tile is a CTA.
///
/// It multiplies rows outside the sequence of a tile by weights of zero, so all rows below
/// sizes.num_tokens must be finite, and NaN in one sequence may reach another. Rows from there on
/// are not read: they count as zeros.
cudaError_t LaunchFa3(const AttentionShape& shape, const AttentionSizes& sizes,
                      const AttentionArgs& args, const TileList& tiles, bool persistent,
                      cudaStream_t stream);

/// Query rows of a tile: what the template is fastest with.
constexpr int32_t Fa3TileRows(int32_t head_dim) { return head_dim == 64 ? 192 : 128; }

/// One instantiation, in a translation unit of its own.
template <int kHeadDim, bool kCausal>
cudaError_t LaunchFa3Instance(const AttentionShape& shape, const AttentionSizes& sizes,
                              const AttentionArgs& args, const TileList& tiles, bool persistent,
                              cudaStream_t stream);

}  // namespace bouquet::rose::cuda
