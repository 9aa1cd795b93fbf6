#include "rose/backend/cuda/attention/mma_sync.cuh"
#include "rose/backend/cuda/attention/own_attention.h"
#include "rose/backend/cuda/attention/visible_keys.cuh"

// FlashAttention on mma.sync: softmax(scale · q·kᵀ) · v over one tile of 64 query rows, with the
// running maximum and sum of each row in registers (Milakov and Gimelshein 2018; Dao 2022).
//
// One CTA of four warps per (head, tile); each warp owns 16 rows. Keys and values come in steps of
// 64 rows through two buffers of shared memory: the copies of the next step run under the products
// of this one. Rows outside the sequence are zeros, never read. Steps that no row of the tile sees
// are skipped, and the last step multiplies only as many blocks of 16 keys as it needs.
// Bytes: q and out once, k and v once per tile (mostly from L2). Expected: latency bound below some
// 100 tokens; above, 40 to 60 % of the FA2 template, which serves longer ones.

namespace bouquet::rose::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kRows = kOwnTileRows;
constexpr int kKeys = 64;  // of one step
constexpr int kBuffers = 2;
static_assert(kRows == kWarps * 16);

/// 16 bytes of padding spread the eight rows of an ldmatrix over all banks.
template <int kHeadDim>
constexpr int kStride = kHeadDim + 8;

template <int kHeadDim>
struct SharedTiles {
  __nv_bfloat16 q[kRows * kStride<kHeadDim>];
  __nv_bfloat16 k[kBuffers][kKeys * kStride<kHeadDim>];
  __nv_bfloat16 v[kBuffers][kKeys * kStride<kHeadDim>];
};

struct KernelArgs {
  AttentionArgs args;
  const QueryTile* tiles;
  int32_t num_heads;
  int32_t group;  // query heads per kv head
  VisibleKeys visible;
  float scale_log2;  // scale · log₂ e
};

/// Rows first .. first + 63 of one head of one sequence; those from `length` on are zeros.
template <int kHeadDim>
__device__ __forceinline__ void CopyRows(__nv_bfloat16* to, const __nv_bfloat16* head,
                                         int64_t row_stride, int32_t first, int32_t length) {
  constexpr int kChunks = kHeadDim / 8;
  static_assert(kRows * kChunks % kThreads == 0 && kRows == kKeys);
#pragma unroll
  for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
    const int chunk = static_cast<int>(threadIdx.x) + i * kThreads;
    const int row = chunk / kChunks;
    const int column = chunk % kChunks * 8;
    const bool inside = first + row < length;
    // An address inside the sequence even where nothing is read.
    const __nv_bfloat16* from = head + (inside ? first + row : 0) * row_stride + column;
    CopyOrZero16(SharedAddress(to + row * kStride<kHeadDim> + column), from, inside);
  }
}

/// What one warp keeps of its 16 rows; a thread holds parts of rows g and g + 8.
template <int kHeadDim>
struct RowState {
  uint32_t q[kHeadDim / 16][4];
  float out[kHeadDim / 8][4];
  float maximum[2];
  float sum[2];  // of this thread's columns only, until the end
};

template <int kHeadDim>
__device__ __forceinline__ void LoadQueries(const __nv_bfloat16* rows, RowState<kHeadDim>& state) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const __nv_bfloat16* row = rows + lane % 16 * kStride<kHeadDim> + lane / 16 * 8;
#pragma unroll
  for (int block = 0; block < kHeadDim / 16; ++block) {
    LoadMatrices(state.q[block], SharedAddress(row + block * 16));
  }
}

/// scores = q · kᵀ for the first `num_blocks` blocks of 16 keys.
template <int kHeadDim>
__device__ __forceinline__ void MultiplyKeys(const __nv_bfloat16* keys, int num_blocks,
                                             const RowState<kHeadDim>& state,
                                             float (&scores)[kKeys / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const __nv_bfloat16* row =
      keys + (lane / 16 * 8 + lane % 8) * kStride<kHeadDim> + lane / 8 % 2 * 8;
#pragma unroll
  for (int block = 0; block < kKeys / 16; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[2 * block][i] = 0;
      scores[2 * block + 1][i] = 0;
    }
    if (block < num_blocks) {
#pragma unroll
      for (int depth = 0; depth < kHeadDim / 16; ++depth) {
        uint32_t b[4];
        LoadMatrices(b, SharedAddress(row + block * 16 * kStride<kHeadDim> + depth * 16));
        MultiplyAdd(scores[2 * block], state.q[depth], b[0], b[1]);
        MultiplyAdd(scores[2 * block + 1], state.q[depth], b[2], b[3]);
      }
    }
  }
}

/// −inf for the keys that a row does not see.
__device__ __forceinline__ void Mask(float (&scores)[kKeys / 8][4], int32_t first_key, int32_t row,
                                     int32_t length, const VisibleKeys& visible) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t begin = visible.Begin(row + half * 8);
    const int32_t end = visible.End(row + half * 8, length);
#pragma unroll
    for (int block = 0; block < kKeys / 8; ++block) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int32_t key = first_key + block * 8 + column + i;
        if (key < begin || key >= end) {
          scores[block][half * 2 + i] = -INFINITY;
        }
      }
    }
  }
}

/// scores → 2^(scale · (score − maximum)); sums and earlier results follow the new maximum.
template <int kHeadDim>
__device__ __forceinline__ void Exponentiate(float (&scores)[kKeys / 8][4], float scale_log2,
                                             RowState<kHeadDim>& state) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float maximum = state.maximum[half];
#pragma unroll
    for (auto& score : scores) {
      maximum = fmaxf(maximum, fmaxf(score[half * 2], score[half * 2 + 1]));
    }
    maximum = fmaxf(maximum, __shfl_xor_sync(~0U, maximum, 1));
    maximum = fmaxf(maximum, __shfl_xor_sync(~0U, maximum, 2));
    // A row that has seen no key yet: keep (−inf) − (−inf) out of the exponent.
    const float base = maximum == -INFINITY ? 0 : maximum * scale_log2;
    const float shrink = Exp2(state.maximum[half] * scale_log2 - base);
    state.maximum[half] = maximum;
    float sum = 0;
#pragma unroll
    for (auto& score : scores) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        score[half * 2 + i] = Exp2(score[half * 2 + i] * scale_log2 - base);
        sum += score[half * 2 + i];
      }
    }
    state.sum[half] = state.sum[half] * shrink + sum;
#pragma unroll
    for (auto& out : state.out) {
      out[half * 2] *= shrink;
      out[half * 2 + 1] *= shrink;
    }
  }
}

/// out += weights · v
template <int kHeadDim>
__device__ __forceinline__ void MultiplyValues(const float (&weights)[kKeys / 8][4],
                                               const __nv_bfloat16* values, int num_blocks,
                                               RowState<kHeadDim>& state) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const __nv_bfloat16* row = values + lane % 16 * kStride<kHeadDim> + lane / 16 * 8;
#pragma unroll
  for (int block = 0; block < kKeys / 16; ++block) {
    if (block < num_blocks) {
      const float(&left)[4] = weights[2 * block];
      const float(&right)[4] = weights[2 * block + 1];
      const uint32_t a[4] = {PackBf16(left[0], left[1]), PackBf16(left[2], left[3]),
                             PackBf16(right[0], right[1]), PackBf16(right[2], right[3])};
#pragma unroll
      for (int column = 0; column < kHeadDim / 16; ++column) {
        uint32_t b[4];
        LoadTransposedMatrices(b,
                               SharedAddress(row + block * 16 * kStride<kHeadDim> + column * 16));
        MultiplyAdd(state.out[2 * column], a, b[0], b[1]);
        MultiplyAdd(state.out[2 * column + 1], a, b[2], b[3]);
      }
    }
  }
}

/// Divides by the sums and stores the warp's rows, through shared memory so that each store is 16
/// bytes of one row.
template <int kHeadDim>
__device__ __forceinline__ void StoreRows(RowState<kHeadDim>& state, __nv_bfloat16* staging,
                                          __nv_bfloat16* out, int64_t out_stride,
                                          int32_t num_rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = state.sum[half];
    sum += __shfl_xor_sync(~0U, sum, 1);
    sum += __shfl_xor_sync(~0U, sum, 2);
    const float reciprocal = 1.0F / sum;
    __nv_bfloat16* row = staging + (lane / 4 + half * 8) * kStride<kHeadDim> + lane % 4 * 2;
#pragma unroll
    for (int block = 0; block < kHeadDim / 8; ++block) {
      *reinterpret_cast<uint32_t*>(row + block * 8) = PackBf16(
          state.out[block][half * 2] * reciprocal, state.out[block][half * 2 + 1] * reciprocal);
    }
  }
  __syncwarp();
  constexpr int kChunks = kHeadDim / 8;
#pragma unroll
  for (int i = 0; i < 16 * kChunks / 32; ++i) {
    const int chunk = lane + i * 32;
    const int row = chunk / kChunks;
    const int column = chunk % kChunks * 8;
    if (row < num_rows) {
      *reinterpret_cast<uint4*>(out + row * out_stride + column) =
          *reinterpret_cast<const uint4*>(staging + row * kStride<kHeadDim> + column);
    }
  }
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads) TensorCoreAttention(const KernelArgs kernel) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SharedTiles<kHeadDim>*>(shared_bytes);
  const AttentionArgs& args = kernel.args;
  const QueryTile tile = kernel.tiles[blockIdx.y];
  if (tile.length == 0) {
    return;
  }
  const int head = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first_element = tile.first_token * args.row_stride;
  const __nv_bfloat16* q = args.q + first_element + head * kHeadDim;
  const __nv_bfloat16* k = args.k + first_element + head / kernel.group * kHeadDim;
  const __nv_bfloat16* v = args.v + first_element + head / kernel.group * kHeadDim;

  const int32_t last_row = min(tile.first_row + kRows, tile.length) - 1;
  const int32_t begin = kernel.visible.Begin(tile.first_row) / kKeys * kKeys;
  const int32_t end = kernel.visible.End(last_row, tile.length);
  const int32_t steps = (end - begin + kKeys - 1) / kKeys;

  CopyRows<kHeadDim>(shared.q, q, args.row_stride, tile.first_row, tile.length);
  CopyRows<kHeadDim>(shared.k[0], k, args.row_stride, begin, tile.length);
  CommitCopies();
  CopyRows<kHeadDim>(shared.v[0], v, args.row_stride, begin, tile.length);
  CommitCopies();

  RowState<kHeadDim> state{};
  state.maximum[0] = state.maximum[1] = -INFINITY;
  const int32_t warp_row = tile.first_row + warp * 16;
  const bool has_rows = warp_row < tile.length;
  for (int32_t step = 0; step < steps; ++step) {
    const int32_t first_key = begin + step * kKeys;
    if (step + 1 < steps) {
      CopyRows<kHeadDim>(shared.k[(step + 1) % 2], k, args.row_stride, first_key + kKeys,
                         tile.length);
    }
    CommitCopies();
    if (step + 1 < steps) {
      CopyRows<kHeadDim>(shared.v[(step + 1) % 2], v, args.row_stride, first_key + kKeys,
                         tile.length);
    }
    CommitCopies();
    WaitForCopies<3>();  // all but v of this step, and k and v of the next
    __syncthreads();
    const int num_blocks = (min(end - first_key, kKeys) + 15) / 16;
    float scores[kKeys / 8][4];
    if (has_rows) {
      if (step == 0) {
        LoadQueries<kHeadDim>(shared.q + warp * 16 * kStride<kHeadDim>, state);
      }
      MultiplyKeys<kHeadDim>(shared.k[step % 2], num_blocks, state, scores);
      if (first_key < kernel.visible.Begin(warp_row + 15) ||
          first_key + kKeys > kernel.visible.End(warp_row, tile.length)) {
        Mask(scores, first_key, warp_row + lane / 4, tile.length, kernel.visible);
      }
      Exponentiate<kHeadDim>(scores, kernel.scale_log2, state);
    }
    WaitForCopies<2>();  // all but k and v of the next
    __syncthreads();
    if (has_rows) {
      MultiplyValues<kHeadDim>(scores, shared.v[step % 2], num_blocks, state);
    }
    __syncthreads();  // before the copies of the next round overwrite these buffers
  }
  if (has_rows) {
    const int64_t out_stride = static_cast<int64_t>(kernel.num_heads) * kHeadDim;
    StoreRows<kHeadDim>(state, shared.q + warp * 16 * kStride<kHeadDim>,
                        args.out + (tile.first_token + warp_row) * out_stride + head * kHeadDim,
                        out_stride, tile.length - warp_row);
  }
}

template <int kHeadDim>
cudaError_t Launch(const KernelArgs& kernel, int32_t num_tiles, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(kernel.num_heads), static_cast<unsigned>(num_tiles));
  TensorCoreAttention<kHeadDim><<<grid, kThreads, sizeof(SharedTiles<kHeadDim>), stream>>>(kernel);
  return cudaGetLastError();
}

template <int kHeadDim>
cudaError_t AllowSharedMemory() {
  return cudaFuncSetAttribute(TensorCoreAttention<kHeadDim>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(SharedTiles<kHeadDim>));
}

}  // namespace

cudaError_t PrepareTensorCoreAttention() {
  for (const cudaError_t error :
       {AllowSharedMemory<32>(), AllowSharedMemory<64>(), AllowSharedMemory<128>()}) {
    if (error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

cudaError_t LaunchTensorCoreAttention(const AttentionShape& shape, const AttentionArgs& args,
                                      const TileList& tiles, cudaStream_t stream) {
  constexpr float kLog2E = 1.44269504088896340736F;
  const KernelArgs kernel{args,
                          tiles.tiles,
                          shape.num_heads,
                          shape.num_heads / shape.num_kv_heads,
                          VisibleKeys::Of(shape),
                          args.scale * kLog2E};
  switch (shape.head_dim) {
    case 32: return Launch<32>(kernel, tiles.capacity, stream);
    case 64: return Launch<64>(kernel, tiles.capacity, stream);
    case 128: return Launch<128>(kernel, tiles.capacity, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace bouquet::rose::cuda
