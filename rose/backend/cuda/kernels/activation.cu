#include "rose/backend/cuda/kernels/activation.h"

#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/activation.cuh"
#include "rose/backend/cuda/device/vector_access.cuh"
#include "rose/backend/cuda/kernels/vector_width.h"

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 256;
// Rows beyond the grid's height are taken in turn.
constexpr int64_t kMaxGridRows = 32768;

template <int kVec, Activation kActivation, bool kGated>
__global__ void __launch_bounds__(kThreads) ActivationKernel(ActivationArgs args) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kVec;
  if (column >= args.width) {
    return;
  }
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    const __nv_bfloat16* in = args.in + row * args.in_stride + (kGated ? 2 : 1) * column;
    Values<kVec> out;
    if constexpr (kGated) {
      const Values<kVec> pairs[2] = {Load<kVec>(in), Load<kVec>(in + kVec)};
#pragma unroll
      for (int k = 0; k < kVec; ++k) {
        const float gate = pairs[2 * k / kVec].at[2 * k % kVec];
        const float up = pairs[(2 * k + 1) / kVec].at[(2 * k + 1) % kVec];
        out.at[k] = Activate<kActivation>(gate) * up;
      }
    } else {
      out = Load<kVec>(in);
#pragma unroll
      for (int k = 0; k < kVec; ++k) {
        out.at[k] = Activate<kActivation>(out.at[k]);
      }
    }
    if (args.residual != nullptr) {
      const Values<kVec> residual = Load<kVec>(args.residual + row * args.residual_stride + column);
#pragma unroll
      for (int k = 0; k < kVec; ++k) {
        out.at[k] += residual.at[k];
      }
    }
    Store<kVec>(args.out + row * args.out_stride + column, out);
  }
}

}  // namespace

void LaunchActivation(const ActivationArgs& args, cudaStream_t stream) {
  const bool vectorised =
      IsVectorised({args.width, args.in_stride, args.residual_stride, args.out_stride},
                   {args.in, args.residual, args.out});
  const int64_t columns_per_block = kThreads * (vectorised ? 8 : 1);
  const dim3 grid(static_cast<unsigned>((args.width + columns_per_block - 1) / columns_per_block),
                  static_cast<unsigned>(std::min(args.rows, kMaxGridRows)));
  WithActivation(args.activation, [&]<Activation kActivation>() {
    if (vectorised && args.gated) {
      ActivationKernel<8, kActivation, true><<<grid, kThreads, 0, stream>>>(args);
    } else if (vectorised) {
      ActivationKernel<8, kActivation, false><<<grid, kThreads, 0, stream>>>(args);
    } else if (args.gated) {
      ActivationKernel<1, kActivation, true><<<grid, kThreads, 0, stream>>>(args);
    } else {
      ActivationKernel<1, kActivation, false><<<grid, kThreads, 0, stream>>>(args);
    }
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
