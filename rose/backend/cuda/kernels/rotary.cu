#include "rose/backend/cuda/kernels/rotary.h"

#include <algorithm>

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/block_reduce.cuh"

// One block a token, so that its angles are computed once; a warp takes every fourth head. Element
// i rotates together with i + head_dim / 2.

namespace bouquet::rose::cuda {
namespace {

constexpr int kMostWarps = 24;  // a warp a head, for up to so many

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

/// What a warp holds of one head: its lanes take two neighbours of each half.
template <int kSteps>
struct Head {
  Pair low[kSteps];
  Pair high[kSteps];

  template <class Function>  // (step, first element within a half)
  __device__ __forceinline__ static void ForEach(int half, Function function) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = 2 * (static_cast<int>(threadIdx.x) % 32 + 32 * step);
      if (i < half) {
        function(step, i);
      }
    }
  }
  __device__ __forceinline__ void Read(const __nv_bfloat16* row, int half) {
    ForEach(half, [&](int step, int i) {
      low[step] = LoadPair(row + i);
      high[step] = LoadPair(row + half + i);
    });
  }
  __device__ __forceinline__ void Write(__nv_bfloat16* row, int half) const {
    ForEach(half, [&](int step, int i) {
      StorePair(row + i, low[step]);
      StorePair(row + half + i, high[step]);
    });
  }
  __device__ __forceinline__ void Normalise(const float* gain, float epsilon, int half) {
    float squares = 0;
    ForEach(half, [&](int step, int) {
      squares += low[step].first * low[step].first + low[step].second * low[step].second +
                 high[step].first * high[step].first + high[step].second * high[step].second;
    });
    const float scale = 1.0F / sqrtf(WarpSum(squares) / static_cast<float>(2 * half) + epsilon);
    ForEach(half, [&](int step, int i) {
      low[step].first *= scale * gain[i];
      low[step].second *= scale * gain[i + 1];
      high[step].first *= scale * gain[half + i];
      high[step].second *= scale * gain[half + i + 1];
    });
  }
  /// `rotations`: cosine and sine of each element of a half.
  __device__ __forceinline__ void Rotate(const float2* rotations, int half) {
    ForEach(half, [&](int step, int i) {
      const float2 r = rotations[i];
      const float2 s = rotations[i + 1];
      const Pair a = low[step];
      const Pair b = high[step];
      low[step] = {a.first * r.x - b.first * r.y, a.second * s.x - b.second * s.y};
      high[step] = {b.first * r.x + a.first * r.y, b.second * s.x + a.second * s.y};
    });
  }
};

/// kSteps · 64 ≥ head_dim / 2. Rows and heads start at even elements.
template <int kSteps>
__global__ void __launch_bounds__(32 * kMostWarps)
    RotaryKernel(const __grid_constant__ RotaryArgs args) {
  __shared__ float2 rotations[kMaxRotaryHeadDim / 2];
  const int64_t token = blockIdx.x;
  const int half = args.head_dim / 2;
  const int heads = args.num_heads + args.num_kv_heads;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const auto row_of = [&](int head) {
    return args.qkv + token * args.row_stride + int64_t{head} * args.head_dim;
  };
  int head = static_cast<int>(threadIdx.x) / 32;
  Head<kSteps> values;
  values.Read(row_of(head), half);  // under way while the angles are computed
  if (args.rotates) {
    const auto position = static_cast<float>(args.positions[token]);
    for (int i = static_cast<int>(threadIdx.x); i < half; i += static_cast<int>(blockDim.x)) {
      sincosf(position * args.frequencies[i], &rotations[i].y, &rotations[i].x);
    }
    __syncthreads();
  }
  while (true) {
    const bool is_query = head < args.num_heads;
    const float* gain = is_query ? args.query_gain : args.key_gain;
    if (gain != nullptr) {
      values.Normalise(gain, is_query ? args.query_epsilon : args.key_epsilon, half);
    }
    if (args.rotates) {
      values.Rotate(rotations, half);
    }
    values.Write(row_of(head), half);
    head += warps;
    if (head >= heads) {
      return;
    }
    values.Read(row_of(head), half);
  }
}

}  // namespace

void LaunchRotary(const RotaryArgs& args, cudaStream_t stream) {
  CHECK_LE(args.head_dim, kMaxRotaryHeadDim);
  CHECK_EQ(args.head_dim % 4, 0);  // pairs within a half
  CHECK_EQ(args.row_stride % 2, 0);
  const auto blocks = static_cast<unsigned>(args.tokens);
  const int warps = std::min(args.num_heads + args.num_kv_heads, kMostWarps);
  const auto threads = static_cast<unsigned>(32 * warps);
  if (args.head_dim <= 128) {
    RotaryKernel<1><<<blocks, threads, 0, stream>>>(args);
  } else {
    RotaryKernel<kMaxRotaryHeadDim / 128><<<blocks, threads, 0, stream>>>(args);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
