#include "rose/backend/cuda/attention/own_attention.h"
#include "rose/backend/cuda/attention/relative_bias.cuh"
#include "rose/backend/cuda/attention/visible_keys.cuh"

// Attention with plain multiply-adds for the head sizes that the tensor-core kernels do not have:
// small test models mostly. One CTA per (head, tile of rows); each of its four warps takes rows
// one after another. Keys come 32 at a time, one a lane: scores, the running maximum and sum as in
// FlashAttention, then each lane adds up its own columns of v. Right for every shape, slow.

namespace bouquet::rose::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kLanes = 32;
constexpr int kColumns = kPlainMaxHeadDim / kLanes;  // of a lane

struct KernelArgs {
  AttentionArgs args;
  const QueryTile* tiles;
  int32_t num_heads;
  int32_t group;
  int32_t head_dim;
  int32_t tile_rows;
  VisibleKeys visible;
};

__device__ float WarpMaximum(float x) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    x = fmaxf(x, __shfl_xor_sync(~0U, x, distance));
  }
  return x;
}

__device__ float WarpSum(float x) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(~0U, x, distance);
  }
  return x;
}

/// One query row, the sequence's `row`-th; `k` and `v` start at the first token of the sequence.
__device__ void AttendRow(const float* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                          int64_t row_stride, int32_t head_dim, int32_t row, const HeadBias& bias,
                          int32_t begin, int32_t end, __nv_bfloat16* out) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  float maximum = -INFINITY;
  float sum = 0;
  float columns[kColumns] = {};
  for (int32_t first = begin; first < end; first += kLanes) {
    const bool sees = first + lane < end;
    float score = sees ? 0 : -INFINITY;
    if (sees) {
      const __nv_bfloat16* key = k + (first + lane) * row_stride;
      for (int32_t d = 0; d < head_dim; ++d) {
        score += q[d] * __bfloat162float(key[d]);
      }
      if (bias.at_zero != nullptr) {
        score += bias.At(first + lane - row);
      }
    }
    const float new_maximum = fmaxf(maximum, WarpMaximum(score));
    const float shrink = __expf(maximum - new_maximum);
    const float weight = __expf(score - new_maximum);
    maximum = new_maximum;
    sum = sum * shrink + WarpSum(weight);
    const int32_t count = min(end - first, kLanes);
#pragma unroll
    for (float& column : columns) {
      column *= shrink;
    }
    for (int32_t key = 0; key < count; ++key) {
      const float key_weight = __shfl_sync(~0U, weight, key);
      const __nv_bfloat16* value = v + (first + key) * row_stride;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        if (lane + i * kLanes < head_dim) {
          columns[i] += key_weight * __bfloat162float(value[lane + i * kLanes]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    if (lane + i * kLanes < head_dim) {
      out[lane + i * kLanes] = __float2bfloat16(columns[i] / sum);
    }
  }
}

__global__ void __launch_bounds__(kWarps* kLanes) PlainAttention(const KernelArgs kernel) {
  __shared__ float queries[kWarps][kPlainMaxHeadDim];
  const AttentionArgs& args = kernel.args;
  const QueryTile tile = kernel.tiles[blockIdx.y];
  const int head = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t first_element = tile.first_token * args.row_stride;
  const int64_t kv_element = first_element + head / kernel.group * kernel.head_dim;
  const HeadBias bias = HeadBias::Of(args, head);
  const int32_t end_row = min(tile.first_row + kernel.tile_rows, tile.length);
  for (int32_t row = tile.first_row + warp; row < end_row; row += kWarps) {
    const __nv_bfloat16* q =
        args.q + first_element + row * args.row_stride + head * kernel.head_dim;
    for (int32_t d = lane; d < kernel.head_dim; d += kLanes) {
      queries[warp][d] = args.scale * __bfloat162float(q[d]);
    }
    __syncwarp();
    const int64_t out_row = static_cast<int64_t>(tile.first_token + row) * kernel.num_heads + head;
    AttendRow(queries[warp], args.k + kv_element, args.v + kv_element, args.row_stride,
              kernel.head_dim, row, bias, kernel.visible.Begin(row),
              kernel.visible.End(row, tile.length), args.out + out_row * kernel.head_dim);
    __syncwarp();
  }
}

}  // namespace

cudaError_t LaunchPlainAttention(const AttentionShape& shape, const AttentionArgs& args,
                                 const TileList& tiles, cudaStream_t stream) {
  const KernelArgs kernel{
      args,           tiles.tiles, shape.num_heads,       shape.num_heads / shape.num_kv_heads,
      shape.head_dim, tiles.rows,  VisibleKeys::Of(shape)};
  const dim3 grid(static_cast<unsigned>(shape.num_heads), static_cast<unsigned>(tiles.capacity));
  PlainAttention<<<grid, kWarps * kLanes, 0, stream>>>(kernel);
  return cudaGetLastError();
}

}  // namespace bouquet::rose::cuda
