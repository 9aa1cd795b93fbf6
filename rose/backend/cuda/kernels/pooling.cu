#include "rose/backend/cuda/kernels/pooling.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/vector_access.cuh"
#include "rose/backend/cuda/kernels/vector_width.h"

// A block takes kLanes · kVec columns of one sequence and one mode. Its groups of kLanes threads
// read every kGroups-th token each, and are added up as a tree at the end: the same bits in every
// batch.

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 1024;
// Eight lanes read 128 bytes of a row at once: more groups make a long sequence short.
constexpr int LanesOf(int vec) { return vec == 8 ? 8 : 32; }

/// The larger; a NaN on either side survives, since it marks the row as not finite.
__device__ __forceinline__ float Larger(float a, float b) { return a > b || a != a ? a : b; }

template <int kVec>
__device__ void Combine(PoolingMode mode, Values<kVec>* total, const Values<kVec>& more) {
#pragma unroll
  for (int k = 0; k < kVec; ++k) {
    total->at[k] =
        mode == PoolingMode::kMax ? Larger(total->at[k], more.at[k]) : total->at[k] + more.at[k];
  }
}

template <int kVec>
__global__ void __launch_bounds__(kThreads) PoolingKernel(PoolingArgs args) {
  constexpr int kLanes = LanesOf(kVec);
  constexpr int kGroups = kThreads / kLanes;
  __shared__ Values<kVec> partial[kGroups][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int group = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t column = (int64_t{blockIdx.x} * kLanes + lane) * kVec;
  const int64_t sequence = blockIdx.y;
  const PoolingMode mode = args.modes[blockIdx.z];
  const bool is_in_row = column < args.width;
  const int32_t first = args.sequence_offsets[sequence];
  const int32_t length = args.sequence_offsets[sequence + 1] - first;

  int32_t begin = args.pooling_starts == nullptr ? 0 : args.pooling_starts[sequence];
  int32_t end = length;
  float scale = 1;
  const auto count = static_cast<float>(length - begin);
  switch (mode) {
    case PoolingMode::kCls:
      begin = 0;
      end = min(1, length);
      break;
    case PoolingMode::kLastToken: begin = max(0, length - 1); break;
    case PoolingMode::kMax: break;
    case PoolingMode::kMean: scale = 1.0F / count; break;
    case PoolingMode::kMeanSqrtLength: scale = 1.0F / sqrtf(count); break;
    case PoolingMode::kWeightedMean:
      scale = 2.0F / (static_cast<float>(begin + 1 + length) * count);
      break;
  }
  if (begin >= end) {
    scale = 0;
  }

  Values<kVec> total;
#pragma unroll
  for (int k = 0; k < kVec; ++k) {
    total.at[k] = mode == PoolingMode::kMax && begin < end ? -INFINITY : 0.0F;
  }
  if (is_in_row) {
    const __nv_bfloat16* hidden = args.hidden + first * args.hidden_stride + column;
#pragma unroll 4
    for (int32_t token = begin + group; token < end; token += kGroups) {
      Values<kVec> value = Load<kVec>(hidden + token * args.hidden_stride);
      if (mode == PoolingMode::kWeightedMean) {
#pragma unroll
        for (int k = 0; k < kVec; ++k) {
          value.at[k] *= static_cast<float>(token + 1);
        }
      }
      Combine(mode, &total, value);
    }
  }
  partial[group][lane] = total;
  for (int half = kGroups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group < half) {
      Combine(mode, &total, partial[group + half][lane]);
      partial[group][lane] = total;
    }
  }
  if (group == 0 && is_in_row) {
    float* out = args.out + sequence * args.out_stride + blockIdx.z * args.width + column;
#pragma unroll
    for (int k = 0; k < kVec; ++k) {
      out[k] = begin < end ? total.at[k] * scale : 0.0F;
    }
  }
}

}  // namespace

void LaunchPooling(const PoolingArgs& args, cudaStream_t stream) {
  CHECK_LE(args.num_modes, kMaxPoolingModes);
  const bool vectorised = IsVectorised({args.width, args.hidden_stride}, {args.hidden});
  const int64_t columns = vectorised ? LanesOf(8) * 8 : LanesOf(1);
  const dim3 grid(static_cast<unsigned>((args.width + columns - 1) / columns),
                  static_cast<unsigned>(args.sequences), static_cast<unsigned>(args.num_modes));
  if (vectorised) {
    PoolingKernel<8><<<grid, kThreads, 0, stream>>>(args);
  } else {
    PoolingKernel<1><<<grid, kThreads, 0, stream>>>(args);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
