// FlashInfer's FA3 template for one head size and mask (BOUQUET_HEAD_DIM, BOUQUET_CAUSAL) with a
// tile scheduler of our own, which reads the planner's list: no host plan, and a captured launch
// replays with any lengths. Compiled once per instance: 30 to 110 s and 3 GB each.
#include <cuda_bf16.h>

#include <cstdint>

#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>
#include <flashinfer/cutlass_utils.cuh>

#include "rose/backend/cuda/attention/flashinfer_fa3.h"

namespace bouquet::rose::cuda {
namespace {

using Element = cutlass::bfloat16_t;
using RaggedParams = flashinfer::BatchPrefillRaggedParams<Element, Element, Element, int32_t>;

constexpr int kKeys =
    128;  // of one step: measured best nearly everywhere; the template's own is 192
constexpr int kStages = 2;
constexpr bool kCausal = BOUQUET_CAUSAL != 0;

/// Item = tile · num_heads + head, so that neighbours share keys; a CTA takes every gridDim-th. The
/// method names are the template's.
struct PlannedTileScheduler {
  struct Params {
    const QueryTile* tiles;
    int32_t num_tiles;
    cutlass::FastDivmod heads;
    cutlass::FastDivmod group;
  };

  struct WorkTileInfo {
    QueryTile tile;
    int32_t head = 0;
    int32_t kv_head = 0;
    int32_t item = 0;

    CUTLASS_DEVICE bool is_valid(const Params&) const { return tile.length > 0; }
    CUTLASS_DEVICE auto get_block_coord(const Params&) const {
      return cute::tuple{tile.first_row / Fa3TileRows(BOUQUET_HEAD_DIM),
                         head,
                         kv_head,
                         tile.first_token,
                         tile.first_token,
                         tile.length,
                         tile.length,
                         tile.sequence};
    }
  };

  CUTLASS_DEVICE WorkTileInfo Take(const Params& params, int32_t item) const {
    WorkTileInfo work;
    int32_t tile = 0;
    params.heads(tile, work.head, item);
    if (tile < params.num_tiles) {
      const int4 entry = __ldg(reinterpret_cast<const int4*>(params.tiles + tile));
      work.tile = {entry.x, entry.y, entry.z, entry.w};
    }
    work.kv_head = params.group.divide(work.head);
    work.item = item;
    return work;
  }

  CUTLASS_DEVICE WorkTileInfo get_initial_work(const Params& params) const {
    return Take(params, static_cast<int32_t>(blockIdx.x));
  }
  template <bool kIsProducer = false>
  CUTLASS_DEVICE WorkTileInfo get_next_work(const Params& params, const WorkTileInfo& last) const {
    return Take(params, last.item + static_cast<int32_t>(gridDim.x));
  }
  CUTLASS_DEVICE void init_consumer() const {}
  CUTLASS_DEVICE void prefetch_next_work(const Params&, WorkTileInfo&) const {}
  CUTLASS_DEVICE void broadcast_next_work(WorkTileInfo&) const {}
};

using Traits = flashinfer::AttentionKernelTraits<
    /*USE_TMA_LOAD_KV=*/true, BOUQUET_HEAD_DIM, BOUQUET_HEAD_DIM, Fa3TileRows(BOUQUET_HEAD_DIM),
    kKeys, kStages, Element, Element, Element, int32_t, flashinfer::StandardAttention>;
using Mainloop = flashinfer::CollectiveMainloop<RaggedParams::AdditionalParams, Traits, kCausal>;
using Epilogue = flashinfer::CollectiveEpilogue<Traits>;

auto RowsOf(int32_t num_tokens, int32_t num_heads, int64_t row_stride) {
  return flashinfer::get_gmem_layout(num_tokens, num_heads, BOUQUET_HEAD_DIM, row_stride,
                                     static_cast<int64_t>(BOUQUET_HEAD_DIM));
}

Element* ElementsOf(const __nv_bfloat16* elements) {
  return reinterpret_cast<Element*>(const_cast<__nv_bfloat16*>(elements));
}

int32_t NumMultiprocessors() {
  static const int32_t count = [] {
    int device = 0;
    int value = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device);
    return value;
  }();
  return count;
}

}  // namespace

template <int kHeadDim, bool kIsCausal>
cudaError_t LaunchFa3Instance(const AttentionShape& shape, const AttentionSizes& sizes,
                              const AttentionArgs& args, const TileList& tiles, bool persistent,
                              cudaStream_t stream) {
  // The bounds of the TMA copies are those of the step, not of the buffers.
  const int32_t rows = sizes.num_tokens;
  const auto q = RowsOf(rows, shape.num_heads, args.row_stride);
  const auto kv = RowsOf(rows, shape.num_kv_heads, args.row_stride);
  const auto out = RowsOf(rows, shape.num_heads, static_cast<int64_t>(shape.num_heads) * kHeadDim);
  RaggedParams::AdditionalParams additional{};
  additional.sm_scale = args.scale;
  typename Mainloop::Params mainloop = Mainloop::to_underlying_arguments(
      {ElementsOf(args.q), q, ElementsOf(args.k), kv, ElementsOf(args.v), kv,
       /*window_left=*/-1, additional});
  typename Epilogue::Params epilogue = Epilogue::to_underlying_arguments(
      {ElementsOf(args.out), out, nullptr, flashinfer::get_lse_gmem_layout(rows, shape.num_heads)});
  PlannedTileScheduler::Params scheduler{tiles.tiles, tiles.capacity,
                                         cutlass::FastDivmod(shape.num_heads),
                                         cutlass::FastDivmod(shape.num_heads / shape.num_kv_heads)};

  const auto kernel = reinterpret_cast<const void*>(
      flashinfer::PrefillWithKVCacheKernel<Mainloop, Epilogue, Traits,
                                           /*LEFT_SLIDING_WINDOW=*/false, kIsCausal,
                                           PlannedTileScheduler>);
  constexpr int kSharedBytes = sizeof(typename Traits::SharedStorage);
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (allowed != cudaSuccess) {
    return allowed;
  }
  const int32_t items = tiles.capacity * shape.num_heads;
  const int32_t ctas = persistent ? std::min(items, NumMultiprocessors()) : items;
  void* arguments[] = {&mainloop, &epilogue, &scheduler};
  return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(ctas)), dim3(Traits::NUM_THREADS),
                          arguments, kSharedBytes, stream);
}

template cudaError_t LaunchFa3Instance<BOUQUET_HEAD_DIM, kCausal>(const AttentionShape&,
                                                                  const AttentionSizes&,
                                                                  const AttentionArgs&,
                                                                  const TileList&, bool,
                                                                  cudaStream_t);

}  // namespace bouquet::rose::cuda
