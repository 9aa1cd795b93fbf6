#include <type_traits>

#include "rose/backend/cuda/attention/mma_sync.cuh"
#include "rose/backend/cuda/attention/own_attention.h"
#include "rose/backend/cuda/attention/relative_bias.cuh"
#include "rose/backend/cuda/attention/visible_keys.cuh"

// FlashAttention on mma.sync: softmax(scale · q·kᵀ) · v over one tile of query rows, with the
// running maximum and sum of each row in registers (Milakov and Gimelshein 2018; Dao 2022).
//
// One CTA per (head, tile); each of its warps owns 16 rows. Keys and values come in steps of as
// many rows through two buffers of shared memory: the copies of the next step run under the
// products of this one. Rows outside the sequence are zeros, never read. Steps that no row of the
// tile sees are skipped, and the last step multiplies only as many blocks of 16 keys as it needs.
// Tiles are 64 rows, or 16 or 32 where all sequences are that short: then one step is all, the
// second buffer is not asked for, and many small CTAs share an SM.
//
// Bytes: q and out once, k and v once per tile (mostly from L2). Measured on an H200: 2.2 µs for
// one sequence of 16 tokens and 12 heads of 32, 2.8 for 16 heads of 128; for many long ones 158
// TFLOP/s (heads of 32), 228 (64) and 200 (128), where the FA2 template has 279 and 362.

namespace bouquet::rose::cuda {
namespace {

constexpr int kBuffers = 2;

/// 16 bytes of padding spread the eight rows of an ldmatrix over all banks.
template <int kHeadDim>
constexpr int kStride = kHeadDim + 8;

/// As many keys a step as rows a tile.
template <int kHeadDim, int kRows>
struct SharedTiles {
  __nv_bfloat16 q[kRows * kStride<kHeadDim>];
  struct Step {
    __nv_bfloat16 k[kRows * kStride<kHeadDim>];
    __nv_bfloat16 v[kRows * kStride<kHeadDim>];
  } steps[kBuffers];
};

struct KernelArgs {
  AttentionArgs args;
  const QueryTile* tiles;
  int32_t num_heads;
  int32_t group;  // query heads per kv head
  VisibleKeys visible;
  float scale_log2;     // scale · log₂ e
  float inverse_scale;  // what a bias is multiplied with, since scores are scaled after it
};

/// Copies tiles of kRows rows of one head of one sequence. A thread copies the same 16 bytes of
/// every kRowsPerPass-th row, so that addresses are sums of few numbers: with one warp a scheduler
/// their arithmetic would show.
template <int kHeadDim, int kRows>
class RowCopier {
 public:
  __device__ RowCopier(const __nv_bfloat16* head, int64_t row_stride)
      : from_(head + row() * row_stride + column()), row_stride_(row_stride) {}

  /// Rows first .. first + kRows − 1; those from `length` on become zeros, never read.
  __device__ __forceinline__ void Copy(__nv_bfloat16* to, int32_t first, int32_t length) const {
    const uint32_t shared = SharedAddress(to + row() * kStride<kHeadDim> + column());
    const __nv_bfloat16* from = from_ + first * row_stride_;
    const int64_t pass_stride = kRowsPerPass * row_stride_;
    constexpr uint32_t kSharedStride = kRowsPerPass * kStride<kHeadDim> * sizeof(__nv_bfloat16);
    if (first + kRows <= length) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        CopyOrZero16(shared + pass * kSharedStride, from + pass * pass_stride, true);
      }
      return;
    }
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const bool inside = first + row() + pass * kRowsPerPass < length;
      // An address inside the sequence even where nothing is read.
      CopyOrZero16(shared + pass * kSharedStride,
                   inside ? from + pass * pass_stride : from_ - row() * row_stride_, inside);
    }
  }

 private:
  static constexpr int kChunks = kHeadDim / 8;
  static constexpr int kThreads = kRows / 16 * 32;
  static constexpr int kRowsPerPass = kThreads / kChunks;
  static constexpr int kPasses = kRows / kRowsPerPass;
  static_assert(kThreads % kChunks == 0 && kRows % kRowsPerPass == 0);

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kChunks; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kChunks * 8; }

  const __nv_bfloat16* from_;  // of this thread in the sequence's first pass
  int64_t row_stride_;
};

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
template <int kHeadDim, int kKeys>
__device__ __forceinline__ void MultiplyKeys(const __nv_bfloat16* keys, int num_blocks,
                                             const RowState<kHeadDim>& state,
                                             float (&scores)[kKeys / 8][4]) {
  constexpr int kBlocks = kKeys / 16;
  constexpr int kDepths = kHeadDim / 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const __nv_bfloat16* row =
      keys + (lane / 16 * 8 + lane % 8) * kStride<kHeadDim> + lane / 8 % 2 * 8;
  const auto multiply = [&](int block, int depth) {
    uint32_t b[4];
    LoadMatrices(b, SharedAddress(row + block * 16 * kStride<kHeadDim> + depth * 16));
    MultiplyAdd(scores[2 * block], state.q[depth], b[0], b[1]);
    MultiplyAdd(scores[2 * block + 1], state.q[depth], b[2], b[3]);
  };
#pragma unroll
  for (auto& score : scores) {
    score[0] = score[1] = score[2] = score[3] = 0;
  }
  if (num_blocks == kBlocks) {
    // Without branches, and neighbouring products do not wait for each other.
#pragma unroll
    for (int depth = 0; depth < kDepths; ++depth) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        multiply(block, depth);
      }
    }
    return;
  }
#pragma unroll
  for (int block = 0; block < kBlocks - 1; ++block) {
    if (block < num_blocks) {
#pragma unroll
      for (int depth = 0; depth < kDepths; ++depth) {
        multiply(block, depth);
      }
    }
  }
}

/// Adds bias / scale. Row g + 8 is as far from its keys of a block as row g is from those of the
/// block before, so that each value is loaded once for both.
template <int kKeys>
__device__ __forceinline__ void AddBias(float (&scores)[kKeys / 8][4], int32_t first_key,
                                        int32_t row, const HeadBias& bias, float inverse_scale) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  const int32_t distance = first_key + column - row;
  float before[2] = {bias.At(distance - 8), bias.At(distance - 7)};
#pragma unroll
  for (int block = 0; block < kKeys / 8; ++block) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float here = bias.At(distance + block * 8 + i);
      scores[block][i] += here * inverse_scale;
      scores[block][2 + i] += before[i] * inverse_scale;
      before[i] = here;
    }
  }
}

/// −inf for the keys that a row does not see.
template <int kKeys>
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
template <int kHeadDim, int kKeys>
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

/// out += weights · v for the first `num_blocks` blocks of 16 keys.
template <int kHeadDim, int kKeys>
__device__ __forceinline__ void MultiplyValues(const float (&weights)[kKeys / 8][4],
                                               const __nv_bfloat16* values, int num_blocks,
                                               RowState<kHeadDim>& state) {
  constexpr int kBlocks = kKeys / 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const __nv_bfloat16* row = values + lane % 16 * kStride<kHeadDim> + lane / 16 * 8;
  const auto multiply = [&](int block) {
    const float(&left)[4] = weights[2 * block];
    const float(&right)[4] = weights[2 * block + 1];
    const uint32_t a[4] = {PackBf16(left[0], left[1]), PackBf16(left[2], left[3]),
                           PackBf16(right[0], right[1]), PackBf16(right[2], right[3])};
#pragma unroll
    for (int column = 0; column < kHeadDim / 16; ++column) {
      uint32_t b[4];
      LoadTransposedMatrices(b, SharedAddress(row + block * 16 * kStride<kHeadDim> + column * 16));
      MultiplyAdd(state.out[2 * column], a, b[0], b[1]);
      MultiplyAdd(state.out[2 * column + 1], a, b[2], b[3]);
    }
  };
  if (num_blocks == kBlocks) {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      multiply(block);
    }
    return;
  }
#pragma unroll
  for (int block = 0; block < kBlocks - 1; ++block) {
    if (block < num_blocks) {
      multiply(block);
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

template <int kHeadDim, int kRows, bool kBiased>
__global__ void __launch_bounds__(kRows / 16 * 32) TensorCoreAttention(const KernelArgs kernel) {
  constexpr int kKeys = kRows;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SharedTiles<kHeadDim, kRows>*>(shared_bytes);
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
  const RowCopier<kHeadDim, kRows> keys(k, args.row_stride);
  const RowCopier<kHeadDim, kRows> values(v, args.row_stride);
  const auto copy_step = [&](int buffer, int32_t first_key) {
    keys.Copy(shared.steps[buffer].k, first_key, tile.length);
    values.Copy(shared.steps[buffer].v, first_key, tile.length);
  };
  RowCopier<kHeadDim, kRows>(q, args.row_stride).Copy(shared.q, tile.first_row, tile.length);
  copy_step(0, begin);
  CommitCopies();

  RowState<kHeadDim> state{};
  state.maximum[0] = state.maximum[1] = -INFINITY;
  const int32_t warp_row = tile.first_row + warp * 16;
  const bool has_rows = warp_row < tile.length;
  int buffer = 0;
  for (int32_t first_key = begin; first_key < end; first_key += kKeys) {
    WaitForCopies<0>();
    __syncthreads();  // all copies of this step are there, and nobody reads the other buffer now
    if (first_key + kKeys < end) {
      copy_step(1 - buffer, first_key + kKeys);
      CommitCopies();
    }
    if (has_rows) {
      if (first_key == begin) {
        LoadQueries<kHeadDim>(shared.q + warp * 16 * kStride<kHeadDim>, state);
      }
      const int num_blocks = (min(end - first_key, kKeys) + 15) / 16;
      float scores[kKeys / 8][4];
      MultiplyKeys<kHeadDim, kKeys>(shared.steps[buffer].k, num_blocks, state, scores);
      if constexpr (kBiased) {
        AddBias<kKeys>(scores, first_key, warp_row + lane / 4, HeadBias::Of(args, head),
                       kernel.inverse_scale);
      }
      if (first_key < kernel.visible.Begin(warp_row + 15) ||
          first_key + kKeys > kernel.visible.End(warp_row, tile.length)) {
        Mask<kKeys>(scores, first_key, warp_row + lane / 4, tile.length, kernel.visible);
      }
      Exponentiate<kHeadDim, kKeys>(scores, kernel.scale_log2, state);
      MultiplyValues<kHeadDim, kKeys>(scores, shared.steps[buffer].v, num_blocks, state);
    }
    buffer = 1 - buffer;
  }
  if (has_rows) {
    const int64_t out_stride = static_cast<int64_t>(kernel.num_heads) * kHeadDim;
    StoreRows<kHeadDim>(state, shared.q + warp * 16 * kStride<kHeadDim>,
                        args.out + (tile.first_token + warp_row) * out_stride + head * kHeadDim,
                        out_stride, tile.length - warp_row);
  }
}

template <int kHeadDim, int kRows, bool kBiased>
cudaError_t AllowSharedMemory() {
  return cudaFuncSetAttribute(TensorCoreAttention<kHeadDim, kRows, kBiased>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(SharedTiles<kHeadDim, kRows>));
}

template <int kHeadDim, int kRows, bool kBiased>
cudaError_t Launch(const KernelArgs& kernel, const TileList& tiles, bool one_step,
                   cudaStream_t stream) {
  using Shared = SharedTiles<kHeadDim, kRows>;
  const dim3 grid(static_cast<unsigned>(kernel.num_heads), static_cast<unsigned>(tiles.capacity));
  const size_t shared_bytes = sizeof(Shared) - (one_step ? sizeof(typename Shared::Step) : 0);
  TensorCoreAttention<kHeadDim, kRows, kBiased>
      <<<grid, kRows / 16 * 32, shared_bytes, stream>>>(kernel);
  return cudaGetLastError();
}

/// Calls `function` with the two sizes as types.
template <class Function>
cudaError_t WithSizes(int32_t head_dim, int32_t rows, const Function& function) {
  const auto with_rows = [&](auto dim) {
    switch (rows) {
      case 16: return function(dim, std::integral_constant<int, 16>());
      case 32: return function(dim, std::integral_constant<int, 32>());
      case 64: return function(dim, std::integral_constant<int, 64>());
      default: return cudaErrorInvalidValue;
    }
  };
  switch (head_dim) {
    case 32: return with_rows(std::integral_constant<int, 32>());
    case 64: return with_rows(std::integral_constant<int, 64>());
    case 128: return with_rows(std::integral_constant<int, 128>());
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t PrepareTensorCoreAttention() {
  for (const int32_t head_dim : {32, 64, 128}) {
    for (const int32_t rows : {16, 32, 64}) {
      const cudaError_t error = WithSizes(head_dim, rows, [](auto dim, auto tile_rows) {
        const cudaError_t unbiased = AllowSharedMemory<dim.value, tile_rows.value, false>();
        return unbiased != cudaSuccess ? unbiased
                                       : AllowSharedMemory<dim.value, tile_rows.value, true>();
      });
      if (error != cudaSuccess) {
        return error;
      }
    }
  }
  return cudaSuccess;
}

cudaError_t LaunchTensorCoreAttention(const AttentionShape& shape, const AttentionSizes& sizes,
                                      const AttentionArgs& args, const TileList& tiles,
                                      cudaStream_t stream) {
  constexpr float kLog2E = 1.44269504088896340736F;
  const KernelArgs kernel{args,
                          tiles.tiles,
                          shape.num_heads,
                          shape.num_heads / shape.num_kv_heads,
                          VisibleKeys::Of(shape),
                          args.scale * kLog2E,
                          1.0F / args.scale};
  const bool one_step = sizes.longest_sequence <= tiles.rows;
  return WithSizes(shape.head_dim, tiles.rows, [&](auto dim, auto rows) {
    return shape.relative_bias
               ? Launch<dim.value, rows.value, true>(kernel, tiles, one_step, stream)
               : Launch<dim.value, rows.value, false>(kernel, tiles, one_step, stream);
  });
}

}  // namespace bouquet::rose::cuda
