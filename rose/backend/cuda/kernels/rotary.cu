#include "rose/backend/cuda/kernels/rotary.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/block_reduce.cuh"

// One block a token, so that its angles are computed once; a warp takes every fourth head, and its
// lanes the pairs (i, i + head_dim / 2) that rotate together.

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

/// kPairs · 32 ≥ head_dim / 2.
template <int kPairs>
__global__ void __launch_bounds__(kThreads) RotaryKernel(const __grid_constant__ RotaryArgs args) {
  __shared__ float cosines[kMaxRotaryHeadDim / 2];
  __shared__ float sines[kMaxRotaryHeadDim / 2];
  const int64_t token = blockIdx.x;
  const int half = args.head_dim / 2;
  if (args.rotates) {
    const auto position = static_cast<float>(args.positions[token]);
    for (int i = static_cast<int>(threadIdx.x); i < half; i += kThreads) {
      sincosf(position * args.frequencies[i], &sines[i], &cosines[i]);
    }
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int head = static_cast<int>(threadIdx.x) / 32; head < args.num_heads + args.num_kv_heads;
       head += kWarps) {
    __nv_bfloat16* row = args.qkv + token * args.row_stride + int64_t{head} * args.head_dim;
    const bool is_query = head < args.num_heads;
    const float* gain = is_query ? args.query_gain : args.key_gain;
    float low[kPairs];
    float high[kPairs];
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const int i = lane + 32 * p;
      low[p] = i < half ? __bfloat162float(row[i]) : 0.0F;
      high[p] = i < half ? __bfloat162float(row[i + half]) : 0.0F;
      squares += low[p] * low[p] + high[p] * high[p];
    }
    float scale = 1;
    if (gain != nullptr) {
      const float epsilon = is_query ? args.query_epsilon : args.key_epsilon;
      scale = 1.0F / sqrtf(WarpSum(squares) / static_cast<float>(args.head_dim) + epsilon);
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const int i = lane + 32 * p;
      if (i < half) {
        if (gain != nullptr) {
          low[p] *= scale * gain[i];
          high[p] *= scale * gain[i + half];
        }
        float first = low[p];
        float second = high[p];
        if (args.rotates) {
          first = low[p] * cosines[i] - high[p] * sines[i];
          second = high[p] * cosines[i] + low[p] * sines[i];
        }
        row[i] = __float2bfloat16_rn(first);
        row[i + half] = __float2bfloat16_rn(second);
      }
    }
  }
}

}  // namespace

void LaunchRotary(const RotaryArgs& args, cudaStream_t stream) {
  CHECK_LE(args.head_dim, kMaxRotaryHeadDim);
  CHECK_EQ(args.head_dim % 2, 0);
  const auto blocks = static_cast<unsigned>(args.tokens);
  if (args.head_dim <= 64) {
    RotaryKernel<1><<<blocks, kThreads, 0, stream>>>(args);
  } else if (args.head_dim <= 128) {
    RotaryKernel<2><<<blocks, kThreads, 0, stream>>>(args);
  } else {
    RotaryKernel<kMaxRotaryHeadDim / 64><<<blocks, kThreads, 0, stream>>>(args);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
