#include "rose/backend/cuda/kernels/pooling.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/vector_access.cuh"
#include "rose/backend/cuda/kernels/vector_width.h"

// A block takes a few columns, LanesOf(kVec) · kVec, of one row and one mode. A column has
// kLargeBlock / LanesOf(kVec) partial sums, one of every so-many-th token each, which are added up
// as a tree at the end. Few rows take large blocks, in which a thread holds one partial sum; many
// rows, which fill the device anyway, take small blocks, in which it holds several. What is added
// to what is the same: the same bits in every batch.

namespace bouquet::rose::cuda {
namespace {

constexpr int kLargeBlock = 1024;
constexpr int kSmallBlock = 128;
// So many small blocks keep every multiprocessor reading.
constexpr int64_t kManyBlocks = 512;
// Eight lanes read 128 bytes of a row at once: more groups make a long sequence short.
constexpr int LanesOf(int vec) { return vec == 8 ? 8 : 32; }

/// The larger; a NaN on either side survives, since it marks the row as not finite.
__device__ __forceinline__ float Larger(float a, float b) { return a > b || a != a ? a : b; }

template <int kVec>
__device__ __forceinline__ void Weigh(PoolingMode mode, int32_t token, Values<kVec>* value) {
  if (mode == PoolingMode::kWeightedMean) {
#pragma unroll
    for (int k = 0; k < kVec; ++k) {
      value->at[k] *= static_cast<float>(token + 1);
    }
  }
}

template <int kVec>
__device__ __forceinline__ void Combine(PoolingMode mode, Values<kVec>* total,
                                        const Values<kVec>& more) {
#pragma unroll
  for (int k = 0; k < kVec; ++k) {
    total->at[k] =
        mode == PoolingMode::kMax ? Larger(total->at[k], more.at[k]) : total->at[k] + more.at[k];
  }
}

/// What a mode reads of a row's tokens, counted from the sequence's first one, and the factor of
/// the sum.
struct ModeTokens {
  int32_t begin;
  int32_t end;
  float scale;
};

__device__ __forceinline__ ModeTokens TokensOf(PoolingMode mode, const PoolingRange& range) {
  const int32_t length = range.end - range.first;
  ModeTokens tokens = {range.begin - range.first, length, 1.0F};
  const auto count = static_cast<float>(length - tokens.begin);
  switch (mode) {
    case PoolingMode::kCls:
      tokens.begin = 0;
      tokens.end = min(1, length);
      break;
    case PoolingMode::kLastToken: tokens.begin = max(0, length - 1); break;
    case PoolingMode::kMax: break;
    case PoolingMode::kMean: tokens.scale = 1.0F / count; break;
    case PoolingMode::kMeanSqrtLength: tokens.scale = 1.0F / sqrtf(count); break;
    case PoolingMode::kWeightedMean:
      tokens.scale = 2.0F / (static_cast<float>(tokens.begin + 1 + length) * count);
      break;
  }
  return tokens;
}

/// Adds what one thread reads to its share of a column's partial sums: `totals[j]` is number group
/// + j · kGroups of kShare · kGroups.
template <int kVec, int kShare, int kGroups>
__device__ __forceinline__ void AddTokens(PoolingMode mode, const ModeTokens& tokens, int group,
                                          const __nv_bfloat16* hidden, int64_t stride,
                                          Values<kVec> (&totals)[kShare]) {
  constexpr int kUnroll = kShare == 1 ? 4 : 1;
#pragma unroll kUnroll
  for (int32_t next = tokens.begin + group; next < tokens.end; next += kShare * kGroups) {
    Values<kVec> values[kShare];
#pragma unroll
    for (int j = 0; j < kShare; ++j) {  // eight loads under way, hence no branch
      const int32_t token = j == 0 ? next : min(next + j * kGroups, tokens.end - 1);
      values[j] = Load<kVec>(hidden + token * stride);
    }
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      if (j == 0 || next + j * kGroups < tokens.end) {
        Weigh(mode, next + j * kGroups, &values[j]);
        Combine(mode, &totals[j], values[j]);
      }
    }
  }
}

/// The upper part of the tree, in one thread: the sum of all ends in `totals[0]`.
template <int kVec, int kShare>
__device__ __forceinline__ void CombineShare(PoolingMode mode, Values<kVec>* totals) {
  if constexpr (kShare > 1) {
#pragma unroll
    for (int j = 0; j < kShare / 2; ++j) {
      Combine(mode, &totals[j], totals[j + kShare / 2]);
    }
    CombineShare<kVec, kShare / 2>(mode, totals);
  }
}

template <int kVec, int kThreads>
__global__ void __launch_bounds__(kThreads) PoolingKernel(PoolingArgs args) {
  constexpr int kLanes = LanesOf(kVec);
  constexpr int kGroups = kThreads / kLanes;
  constexpr int kShare = kLargeBlock / kThreads;
  __shared__ Values<kVec> partial[kGroups][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int group = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t column = (int64_t{blockIdx.x} * kLanes + lane) * kVec;
  const int64_t row = blockIdx.y;
  const PoolingMode mode = args.modes[blockIdx.z];
  const bool is_in_row = column < args.width;
  const PoolingRange range = args.ranges[row];
  const ModeTokens tokens = TokensOf(mode, range);
  const bool has_tokens = tokens.begin < tokens.end;

  Values<kVec> totals[kShare];
#pragma unroll
  for (int j = 0; j < kShare; ++j) {
#pragma unroll
    for (int k = 0; k < kVec; ++k) {
      totals[j].at[k] = mode == PoolingMode::kMax && has_tokens ? -INFINITY : 0.0F;
    }
  }
  if (is_in_row) {
    AddTokens<kVec, kShare, kGroups>(mode, tokens, group,
                                     args.hidden + range.first * args.hidden_stride + column,
                                     args.hidden_stride, totals);
  }
  CombineShare<kVec, kShare>(mode, totals);
  Values<kVec> total = totals[0];
  partial[group][lane] = total;
  for (int half = kGroups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group < half) {
      Combine(mode, &total, partial[group + half][lane]);
      partial[group][lane] = total;
    }
  }
  if (group == 0 && is_in_row) {
    float* out = args.out + row * args.out_stride + blockIdx.z * args.width + column;
#pragma unroll
    for (int k = 0; k < kVec; ++k) {
      out[k] = has_tokens ? total.at[k] * tokens.scale : 0.0F;
    }
  }
}

template <int kVec>
void Launch(const PoolingArgs& args, cudaStream_t stream) {
  constexpr int64_t kColumns = LanesOf(kVec) * kVec;
  const dim3 grid(static_cast<unsigned>((args.width + kColumns - 1) / kColumns),
                  static_cast<unsigned>(args.rows), static_cast<unsigned>(args.num_modes));
  if (int64_t{grid.x} * grid.y * grid.z < kManyBlocks) {
    PoolingKernel<kVec, kLargeBlock><<<grid, kLargeBlock, 0, stream>>>(args);
  } else {
    PoolingKernel<kVec, kSmallBlock><<<grid, kSmallBlock, 0, stream>>>(args);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void LaunchPooling(const PoolingArgs& args, cudaStream_t stream) {
  CHECK_LE(args.num_modes, kMaxPoolingModes);
  CHECK_LE(args.rows, kMaxPooledRows);
  if (IsVectorised({args.width, args.hidden_stride}, {args.hidden})) {
    Launch<8>(args, stream);
  } else {
    Launch<1>(args, stream);
  }
}

}  // namespace bouquet::rose::cuda
