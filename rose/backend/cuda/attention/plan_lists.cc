#include "rose/backend/cuda/attention/plan_lists.h"

#include <cuda_runtime.h>

#include <array>

#include <fmt/format.h>

#include "rose/backend/cuda/attention/flashinfer_fa3.h"
#include "rose/backend/cuda/attention/own_attention.h"

namespace bouquet::rose::cuda {
namespace {

constexpr bool kFa3Built = BOUQUET_FA3 != 0;
constexpr std::array<int32_t, 2> kFa2TileRows = {64, 128};

template <class T>
size_t AlignedBytes(int64_t count) {
  constexpr size_t kAlignment = 256;
  return (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

template <class T>
T* PlanLists::Take(int64_t count) {
  T* taken = reinterpret_cast<T*>(memory_.get() + used_bytes_);
  used_bytes_ += AlignedBytes<T>(count);
  return taken;
}

Status PlanLists::Allocate(const AttentionSizes& largest, DeviceAllocator& allocator) {
  const int32_t own = MostTiles(largest, 1, OwnTileRows(1));
  const int32_t fa3 = MostTiles(largest, 1, Fa3TileRows(128));
  std::array<int32_t, kFa2TileRows.size()> fa2{};
  size_t bytes = AlignedBytes<QueryTile>(own) + AlignedBytes<QueryTile>(fa3);
  for (size_t i = 0; i < fa2.size(); ++i) {
    fa2[i] = MostTiles(largest, kMaxPlannedGroup, kFa2TileRows[i]);
    bytes += 2 * AlignedBytes<int32_t>(fa2[i]) + AlignedBytes<bool>(fa2[i]);
  }
  bytes += AlignedBytes<int32_t>(fa2[0]) + AlignedBytes<int32_t>(1);
  ASSIGN_OR_RETURN(memory_, allocator.Allocate(bytes, "the work lists of attention"));
  lists_.own.tiles = Take<QueryTile>(own);
  lists_.fa3.tiles = Take<QueryTile>(fa3);
  for (size_t i = 0; i < fa2.size(); ++i) {
    lists_.fa2[i].sequence = Take<int32_t>(fa2[i]);
    lists_.fa2[i].tile = Take<int32_t>(fa2[i]);
    lists_.fa2[i].valid = Take<bool>(fa2[i]);
  }
  lists_.zeros = Take<int32_t>(fa2[0]);  // as the allocator left them
  lists_.kv_chunk = Take<int32_t>(1);
  const int32_t whole_sequence = 1 << 30;
  for (const cudaError_t error :
       {cudaMemcpy(lists_.kv_chunk, &whole_sequence, sizeof whole_sequence, cudaMemcpyHostToDevice),
        // Streams of steps do not wait for the one used here.
        cudaStreamSynchronize(nullptr)}) {
    if (error != cudaSuccess) {
      return Internal(fmt::format("the work lists of attention could not be prepared: {}",
                                  cudaGetErrorString(error)));
    }
  }
  return {};
}

AttentionPlan PlanLists::For(const AttentionShape& shape, const AttentionSizes& sizes,
                             AttentionFamily family) const {
  const bool is_causal = shape.mask == AttentionMask::kCausal;
  const bool is_flashinfer_size =
      !shape.relative_bias && (shape.head_dim == 64 || shape.head_dim == 128);
  const auto is_wanted = [&](AttentionFamily member) {
    return is_flashinfer_size && (family == AttentionFamily::kAuto || family == member);
  };
  const auto size_list = [&](auto& list, int32_t group, int32_t rows) {
    list.rows = rows;
    list.capacity = MostTiles(sizes, group, rows);
  };
  AttentionPlan plan = lists_;
  plan.own.last_first = is_causal;
  plan.fa3.last_first = is_causal;
  size_list(plan.own, 1, OwnTileRows(sizes.longest_sequence));
  if (kFa3Built && is_wanted(AttentionFamily::kFa3)) {
    size_list(plan.fa3, 1, Fa3TileRows(shape.head_dim));
  }
  if (is_wanted(AttentionFamily::kFa2)) {
    for (size_t i = 0; i < kFa2TileRows.size(); ++i) {
      size_list(plan.fa2[i], shape.num_heads / shape.num_kv_heads, kFa2TileRows[i]);
    }
  }
  return plan;
}

}  // namespace bouquet::rose::cuda
