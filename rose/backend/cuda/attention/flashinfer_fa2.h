#pragma once

#include <cuda_runtime.h>

#include "rose/backend/cuda/attention/attention_args.h"
#include "rose/backend/cuda/attention/attention_plan.h"
#include "rose/backend/cuda/attention/attention_shape.h"

namespace bouquet::rose::cuda {

/// FlashInfer's FA2 template (mma.sync) for head_dim 64 and 128, with and without a causal mask or
/// a window. `plan.fa2` says which rows a CTA has; `tile_rows` is 64 or 128. Reads rows outside the
/// sequence of a tile, but nothing of theirs reaches a result.
cudaError_t LaunchFa2(const AttentionShape& shape, const AttentionArgs& args,
                      const AttentionPlan& plan, int32_t tile_rows, cudaStream_t stream);

/// One instantiation, in a translation unit of its own.
enum class Fa2Mask : uint8_t { kNone, kCausal, kWindow };  // kWindow: causal too where asked for
template <int kHeadDim, int kTileRows, Fa2Mask kMask>
cudaError_t LaunchFa2Instance(const AttentionShape& shape, const AttentionArgs& args,
                              const AttentionPlan& plan, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
