// FlashInfer's FA2 template for one head size and mask (BOUQUET_HEAD_DIM, BOUQUET_FA2_MASK), with
// tiles of 64 and 128 rows. The work lists come from our planner, so the host plan of FlashInfer is
// not needed. Compiled once per instance: about 10 s and 0.5 GB each.
#include <cuda_bf16.h>

#include <cstdint>

#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/variants.cuh>

#include "rose/backend/cuda/attention/flashinfer_fa2.h"

namespace bouquet::rose::cuda {
namespace {

using RaggedParams =
    flashinfer::BatchPrefillRaggedParams<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int32_t>;

struct WindowParams : RaggedParams {
  int32_t window = 0;
  bool causal = false;
};

/// |i − j| ≤ window, which the template knows to the left only. Used with its mode for custom
/// masks, where LogitsMask decides every score. What it takes for the length of the keys is the end
/// of what this tile sees, and its own window is set so that it begins where this one does.
template <int kTileRows>
struct WindowAttention : flashinfer::AttentionVariantBase {
  static constexpr bool use_softmax = true;
  uint32_t qo_len;
  uint32_t kv_len;
  uint32_t window_left;
  float sm_scale_log2;
  int32_t window;
  int32_t after;

  __device__ __host__ WindowAttention(const WindowParams& params, uint32_t sequence, uint8_t*) {
    qo_len = params.get_qo_len(sequence);
    sm_scale_log2 = params.sm_scale * flashinfer::math::log2e;
    window = params.window;
    after = params.causal ? 0 : params.window;
    kv_len = qo_len;
#ifdef __CUDA_ARCH__
    const auto group = static_cast<uint32_t>(params.num_qo_heads / params.num_kv_heads);
    const auto tile = static_cast<uint32_t>(params.qo_tile_indices[blockIdx.x]);
    const uint32_t rows_end = ((tile + 1) * kTileRows + group - 1) / group;
    kv_len = min(qo_len, rows_end + static_cast<uint32_t>(after));
#endif
    // It begins at kv_len + first row − (qo_len + window_left), so this makes it first row −
    // window.
    window_left = kv_len + static_cast<uint32_t>(window) - qo_len;
  }

  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx,
                            { return logits; })

  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    const int32_t distance = static_cast<int32_t>(kv_idx) - static_cast<int32_t>(qo_idx);
    return distance >= -window && distance <= after;
  })
};

template <class Params>
Params MakeParams(const AttentionShape& shape, const AttentionArgs& args, const AttentionPlan& plan,
                  const GroupedTileList& tiles) {
  const auto stride = static_cast<uint32_t>(args.row_stride);
  const auto head_dim = static_cast<uint32_t>(shape.head_dim);
  // The template declares pointers to what it only reads as mutable.
  const auto writable = [](auto* pointer) {
    return const_cast<std::remove_const_t<std::remove_pointer_t<decltype(pointer)>>*>(pointer);
  };
  Params params;
  params.q = writable(args.q);
  params.k = writable(args.k);
  params.v = writable(args.v);
  params.o = args.out;
  params.q_indptr = writable(args.sequence_offsets);
  params.kv_indptr = params.q_indptr;
  params.o_indptr = params.q_indptr;
  params.num_qo_heads = static_cast<uint32_t>(shape.num_heads);
  params.num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads);
  params.group_size =
      flashinfer::uint_fastdiv(static_cast<uint32_t>(shape.num_heads / shape.num_kv_heads));
  params.q_stride_n = params.k_stride_n = params.v_stride_n = stride;
  params.q_stride_h = params.k_stride_h = params.v_stride_h = head_dim;
  params.window_left = -1;
  params.sm_scale = args.scale;
  params.rope_rcp_scale = 1;
  params.rope_rcp_theta = 1;
  params.request_indices = tiles.sequence;
  params.qo_tile_indices = tiles.tile;
  params.kv_tile_indices = plan.zeros;
  params.kv_chunk_size_ptr = plan.kv_chunk;
  params.block_valid_mask = tiles.valid;
  params.padded_batch_size = static_cast<uint32_t>(tiles.capacity);
  return params;
}

template <int kTileRows, flashinfer::MaskMode kMode, class Variant, class Params>
cudaError_t Dispatch(const Params& params, cudaStream_t stream) {
  return flashinfer::BatchPrefillWithRaggedKVCacheDispatched<
      kTileRows, BOUQUET_HEAD_DIM, BOUQUET_HEAD_DIM, flashinfer::PosEncodingMode::kNone,
      /*USE_FP16_QK_REDUCTION=*/false, kMode, Variant, Params>(params, nullptr, nullptr,
                                                               /*enable_pdl=*/false, stream);
}

}  // namespace

template <int kHeadDim, int kTileRows, Fa2Mask kMask>
cudaError_t LaunchFa2Instance(const AttentionShape& shape, const AttentionArgs& args,
                              const AttentionPlan& plan, cudaStream_t stream) {
  const GroupedTileList& tiles = plan.fa2[kTileRows == 64 ? 0 : 1];
  if constexpr (kMask == Fa2Mask::kWindow) {
    auto params = MakeParams<WindowParams>(shape, args, plan, tiles);
    params.window = shape.window;
    params.causal = shape.mask == AttentionMask::kCausal;
    return Dispatch<kTileRows, flashinfer::MaskMode::kCustom, WindowAttention<kTileRows>>(params,
                                                                                          stream);
  } else {
    constexpr auto kMode =
        kMask == Fa2Mask::kCausal ? flashinfer::MaskMode::kCausal : flashinfer::MaskMode::kNone;
    using Variant = flashinfer::DefaultAttention</*use_custom_mask=*/false,
                                                 /*use_sliding_window=*/false,
                                                 /*use_logits_soft_cap=*/false,
                                                 /*use_alibi=*/false>;
    return Dispatch<kTileRows, kMode, Variant>(MakeParams<RaggedParams>(shape, args, plan, tiles),
                                               stream);
  }
}

template cudaError_t LaunchFa2Instance<BOUQUET_HEAD_DIM, 64, Fa2Mask::BOUQUET_FA2_MASK>(
    const AttentionShape&, const AttentionArgs&, const AttentionPlan&, cudaStream_t);
template cudaError_t LaunchFa2Instance<BOUQUET_HEAD_DIM, 128, Fa2Mask::BOUQUET_FA2_MASK>(
    const AttentionShape&, const AttentionArgs&, const AttentionPlan&, cudaStream_t);

}  // namespace bouquet::rose::cuda
