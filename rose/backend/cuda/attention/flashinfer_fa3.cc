#include "rose/backend/cuda/attention/flashinfer_fa3.h"

namespace bouquet::rose::cuda {
namespace {

template <int kHeadDim>
cudaError_t LaunchForMask(const AttentionShape& shape, const AttentionSizes& sizes,
                          const AttentionArgs& args, const TileList& tiles, bool persistent,
                          cudaStream_t stream) {
  return shape.mask == AttentionMask::kCausal
             ? LaunchFa3Instance<kHeadDim, true>(shape, sizes, args, tiles, persistent, stream)
             : LaunchFa3Instance<kHeadDim, false>(shape, sizes, args, tiles, persistent, stream);
}

}  // namespace

cudaError_t LaunchFa3(const AttentionShape& shape, const AttentionSizes& sizes,
                      const AttentionArgs& args, const TileList& tiles, bool persistent,
                      cudaStream_t stream) {
  switch (shape.head_dim) {
    case 64: return LaunchForMask<64>(shape, sizes, args, tiles, persistent, stream);
    case 128: return LaunchForMask<128>(shape, sizes, args, tiles, persistent, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace bouquet::rose::cuda
