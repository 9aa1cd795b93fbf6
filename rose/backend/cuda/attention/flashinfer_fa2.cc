#include "rose/backend/cuda/attention/flashinfer_fa2.h"

namespace bouquet::rose::cuda {
namespace {

template <int kHeadDim, int kTileRows>
cudaError_t LaunchForMask(const AttentionShape& shape, const AttentionArgs& args,
                          const AttentionPlan& plan, cudaStream_t stream) {
  if (shape.window > 0) {
    return LaunchFa2Instance<kHeadDim, kTileRows, Fa2Mask::kWindow>(shape, args, plan, stream);
  }
  if (shape.mask == AttentionMask::kCausal) {
    return LaunchFa2Instance<kHeadDim, kTileRows, Fa2Mask::kCausal>(shape, args, plan, stream);
  }
  return LaunchFa2Instance<kHeadDim, kTileRows, Fa2Mask::kNone>(shape, args, plan, stream);
}

template <int kHeadDim>
cudaError_t LaunchForTile(const AttentionShape& shape, const AttentionArgs& args,
                          const AttentionPlan& plan, int32_t tile_rows, cudaStream_t stream) {
  switch (tile_rows) {
    case 64: return LaunchForMask<kHeadDim, 64>(shape, args, plan, stream);
    case 128: return LaunchForMask<kHeadDim, 128>(shape, args, plan, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t LaunchFa2(const AttentionShape& shape, const AttentionArgs& args,
                      const AttentionPlan& plan, int32_t tile_rows, cudaStream_t stream) {
  switch (shape.head_dim) {
    case 64: return LaunchForTile<64>(shape, args, plan, tile_rows, stream);
    case 128: return LaunchForTile<128>(shape, args, plan, tile_rows, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace bouquet::rose::cuda
