#include "rose/backend/cuda/kernels/rotary.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/block_reduce.cuh"

// One block a token, so that its angles are computed once; a warp takes every fourth head. Element
// i rotates together with i + head_dim / 2.

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

struct Pair {
  float first;
  float second;
};
__device__ __forceinline__ Pair LoadPair(const __nv_bfloat16* from) {
  const float2 both = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(from));
  return {both.x, both.y};
}
__device__ __forceinline__ void StorePair(__nv_bfloat16* to, Pair values) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(values.first, values.second);
}

/// The lanes of a warp take two neighbours of each half: kSteps · 64 ≥ head_dim / 2. Rows and heads
/// start at even elements.
template <int kSteps>
__global__ void __launch_bounds__(kThreads) RotaryKernel(const __grid_constant__ RotaryArgs args) {
  __shared__ float2 rotations[kMaxRotaryHeadDim / 2];  // cosine and sine
  const int64_t token = blockIdx.x;
  const int half = args.head_dim / 2;
  if (args.rotates) {
    const auto position = static_cast<float>(args.positions[token]);
    for (int i = static_cast<int>(threadIdx.x); i < half; i += kThreads) {
      sincosf(position * args.frequencies[i], &rotations[i].y, &rotations[i].x);
    }
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int head = static_cast<int>(threadIdx.x) / 32; head < args.num_heads + args.num_kv_heads;
       head += kWarps) {
    __nv_bfloat16* row = args.qkv + token * args.row_stride + int64_t{head} * args.head_dim;
    const bool is_query = head < args.num_heads;
    const float* gain = is_query ? args.query_gain : args.key_gain;
    Pair low[kSteps];
    Pair high[kSteps];
    float squares = 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = 2 * (lane + 32 * step);
      if (i < half) {
        low[step] = LoadPair(row + i);
        high[step] = LoadPair(row + half + i);
        squares += low[step].first * low[step].first + low[step].second * low[step].second +
                   high[step].first * high[step].first + high[step].second * high[step].second;
      }
    }
    float scale = 1;
    if (gain != nullptr) {
      const float epsilon = is_query ? args.query_epsilon : args.key_epsilon;
      scale = 1.0F / sqrtf(WarpSum(squares) / static_cast<float>(args.head_dim) + epsilon);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = 2 * (lane + 32 * step);
      if (i < half) {
        Pair a = low[step];
        Pair b = high[step];
        if (gain != nullptr) {
          a = {a.first * (scale * gain[i]), a.second * (scale * gain[i + 1])};
          b = {b.first * (scale * gain[half + i]), b.second * (scale * gain[half + i + 1])};
        }
        if (args.rotates) {
          const float2 r = rotations[i];
          const float2 s = rotations[i + 1];
          const Pair from = a;
          a = {from.first * r.x - b.first * r.y, from.second * s.x - b.second * s.y};
          b = {b.first * r.x + from.first * r.y, b.second * s.x + from.second * s.y};
        }
        StorePair(row + i, a);
        StorePair(row + half + i, b);
      }
    }
  }
}

}  // namespace

void LaunchRotary(const RotaryArgs& args, cudaStream_t stream) {
  CHECK_LE(args.head_dim, kMaxRotaryHeadDim);
  CHECK_EQ(args.head_dim % 4, 0);  // pairs within a half
  CHECK_EQ(args.row_stride % 2, 0);
  const auto blocks = static_cast<unsigned>(args.tokens);
  if (args.head_dim <= 128) {
    RotaryKernel<1><<<blocks, kThreads, 0, stream>>>(args);
  } else {
    RotaryKernel<kMaxRotaryHeadDim / 128><<<blocks, kThreads, 0, stream>>>(args);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
