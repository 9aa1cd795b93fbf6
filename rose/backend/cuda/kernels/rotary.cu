#include "rose/backend/cuda/kernels/rotary.h"

#include <bit>

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/kernels/vector_width.h"

// A few lanes of a warp hold one head, each as many neighbours of both halves as one load takes:
// element i rotates together with i + head_dim / 2, so that no lane needs what another holds.

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 128;

template <int kCount>
struct alignas(2 * kCount) Neighbours {
  __nv_bfloat162 pairs[kCount / 2];
};

/// One lane's share of a head.
template <int kCount>
struct Part {
  float low[kCount];
  float high[kCount];

  __device__ __forceinline__ static void ReadHalf(const __nv_bfloat16* from, float* to) {
    const auto values = *reinterpret_cast<const Neighbours<kCount>*>(from);
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      const float2 both = __bfloat1622float2(values.pairs[i]);
      to[2 * i] = both.x;
      to[2 * i + 1] = both.y;
    }
  }
  __device__ __forceinline__ static void WriteHalf(__nv_bfloat16* to, const float* from) {
    Neighbours<kCount> values;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      values.pairs[i] = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    }
    *reinterpret_cast<Neighbours<kCount>*>(to) = values;
  }
  __device__ __forceinline__ float Squares() const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sum += low[i] * low[i] + high[i] * high[i];
    }
    return sum;
  }
  /// `gain` of this part's first element; its second half lies `half` further on.
  __device__ __forceinline__ void Scale(float scale, const float* gain, int half) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 g = *reinterpret_cast<const float2*>(gain + i);
      const float2 h = *reinterpret_cast<const float2*>(gain + half + i);
      low[i] *= scale * g.x;
      low[i + 1] *= scale * g.y;
      high[i] *= scale * h.x;
      high[i + 1] *= scale * h.y;
    }
  }
  __device__ __forceinline__ void Rotate(const float2* rotations) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float4 two = *reinterpret_cast<const float4*>(rotations + i);
      RotateOne(i, two.x, two.y);
      RotateOne(i + 1, two.z, two.w);
    }
  }
  __device__ __forceinline__ void RotateOne(int i, float cosine, float sine) {
    const float a = low[i];
    const float b = high[i];
    low[i] = a * cosine - b * sine;
    high[i] = b * cosine + a * sine;
  }
};

/// `lanes` (a power of two, ≤ 32) a head, of which the last may have nothing to do.
template <int kCount>
__global__ void __launch_bounds__(kThreads)
    RotaryKernel(const __grid_constant__ RotaryArgs args, int lanes) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int heads = args.num_heads + args.num_kv_heads;
  const int64_t row = thread / lanes;
  const int64_t token = row / heads;
  const int head = static_cast<int>(row % heads);
  const int half = args.head_dim / 2;
  const int first = static_cast<int>(thread % lanes) * kCount;
  const bool is_needed = token < args.tokens && first < half;
  __nv_bfloat16* at = args.qkv + token * args.row_stride + int64_t{head} * args.head_dim + first;
  Part<kCount> part = {};
  if (is_needed) {
    part.ReadHalf(at, part.low);
    part.ReadHalf(at + half, part.high);
  }
  const bool is_query = head < args.num_heads;
  const float* gain = is_query ? args.query_gain : args.key_gain;
  if (args.query_gain != nullptr || args.key_gain != nullptr) {
    float squares = part.Squares();
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      squares += __shfl_xor_sync(0xffffffffU, squares, distance);
    }
    if (gain != nullptr && is_needed) {
      const float epsilon = is_query ? args.query_epsilon : args.key_epsilon;
      part.Scale(1.0F / sqrtf(squares / static_cast<float>(args.head_dim) + epsilon), gain + first,
                 half);
    }
  }
  if (!is_needed) {
    return;
  }
  if (args.rotations != nullptr) {
    part.Rotate(args.rotations + token * half + first);
  }
  part.WriteHalf(at, part.low);
  part.WriteHalf(at + half, part.high);
}

template <int kCount>
void Launch(const RotaryArgs& args, cudaStream_t stream) {
  const auto lanes = static_cast<int>(
      std::bit_ceil(static_cast<unsigned>((args.head_dim / 2 + kCount - 1) / kCount)));
  CHECK_LE(lanes, 32);
  const int64_t threads = args.tokens * (args.num_heads + args.num_kv_heads) * lanes;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  RotaryKernel<kCount><<<blocks, kThreads, 0, stream>>>(args, lanes);
}

__global__ void __launch_bounds__(kThreads)
    RotationsKernel(const __grid_constant__ RotationsArgs args) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int half = args.head_dim / 2;
  if (thread < args.tokens * half) {
    const auto position = static_cast<float>(args.positions[thread / half]);
    float2 rotation;
    sincosf(position * args.frequencies[thread % half], &rotation.y, &rotation.x);
    args.rotations[thread] = rotation;
  }
}

}  // namespace

void LaunchRotary(const RotaryArgs& args, cudaStream_t stream) {
  CHECK(CanRotate(args.head_dim));
  CHECK_EQ(args.row_stride % 2, 0);
  if (IsVectorised({args.head_dim / 2, args.row_stride}, {args.qkv})) {
    Launch<8>(args, stream);
  } else if (args.head_dim % 8 == 0 && args.row_stride % 4 == 0 &&
             reinterpret_cast<uintptr_t>(args.qkv) % 8 == 0) {
    Launch<4>(args, stream);
  } else {
    Launch<2>(args, stream);
  }
  CUDA_CHECK(cudaGetLastError());
}

void LaunchRotations(const RotationsArgs& args, cudaStream_t stream) {
  CHECK(CanRotate(args.head_dim));
  const int64_t threads = args.tokens * (args.head_dim / 2);
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  RotationsKernel<<<blocks, kThreads, 0, stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
