#include "rose/backend/cuda/attention/plan_kernel.h"

// Work lists of a step from the offsets of its sequences.
//
// Every CTA ranks the sequences by length (n comparisons a thread) and sums their tiles; then each
// writes its share of the lists, finding the sequence of a tile by bisection, and zeroes its share
// of the padding. No CTA waits for another. Bytes: 4 (n + 1) read by each CTA; 16 or 9 written per
// tile; 2 · out_width per row of padding. Expected: the latency of one small kernel, 3 to 5 µs.

namespace bouquet::rose::cuda {
namespace {

// A thread per sequence, 128 at least: few threads have few barriers to wait for.
constexpr int kMostThreads = kMaxPlannedSequences;
constexpr int kMostWarps = kMostThreads / 32;
constexpr int kLists = 4;  // own, fa3, fa2 of 64, fa2 of 128

struct Ranked {
  int32_t first_token[kMostThreads];        // by rank: longest first
  int32_t length[kMostThreads];             // by rank
  int32_t sequence[kMostThreads];           // by rank
  int32_t start[kLists][kMostThreads + 1];  // tiles before that rank
  int32_t unranked[kMostThreads];           // lengths by sequence
  int32_t warp_sum[kLists][kMostWarps];
};

__device__ int32_t TilesOf(int32_t length, int32_t group, int32_t rows) {
  return rows == 0 ? 0 : (length * group + rows - 1) / rows;
}

__device__ void RankByLength(const int32_t* offsets, int32_t count, Ranked& ranked) {
  const int32_t thread = static_cast<int32_t>(threadIdx.x);
  const int32_t first = thread < count ? offsets[thread] : 0;
  const int32_t length = thread < count ? offsets[thread + 1] - first : 0;
  ranked.unranked[thread] = length;
  ranked.length[thread] = 0;
  __syncthreads();
  if (thread < count) {
    int32_t rank = 0;
    // What lies between the last sequence and a multiple of kUnroll is zero and changes no rank.
    constexpr int32_t kUnroll = 8;
#pragma unroll 1
    for (int32_t first_other = 0; first_other < count; first_other += kUnroll) {
#pragma unroll
      for (int32_t i = 0; i < kUnroll; ++i) {
        const int32_t other = first_other + i;
        const int32_t other_length = ranked.unranked[other];
        rank += static_cast<int32_t>(other_length > length ||
                                     (other_length == length && other < thread));
      }
    }
    ranked.first_token[rank] = first;
    ranked.length[rank] = length;
    ranked.sequence[rank] = thread;
  }
  __syncthreads();
}

/// start[list][r] = tiles of the ranks before r, for all lists at once.
__device__ void SumTiles(const int32_t (&tiles)[kLists], Ranked& ranked) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  int32_t sum[kLists];
#pragma unroll
  for (int list = 0; list < kLists; ++list) {
    sum[list] = tiles[list];
    for (int distance = 1; distance < 32; distance *= 2) {
      const int32_t before = __shfl_up_sync(~0U, sum[list], distance);
      sum[list] += lane >= distance ? before : 0;
    }
    if (lane == 31) {
      ranked.warp_sum[list][warp] = sum[list];
    }
  }
  __syncthreads();
#pragma unroll
  for (int list = 0; list < kLists; ++list) {
    int32_t before = 0;
    for (int other = 0; other < warp; ++other) {
      before += ranked.warp_sum[list][other];
    }
    ranked.start[list][thread + 1] = before + sum[list];
  }
  if (thread < kLists) {
    ranked.start[thread][0] = 0;
  }
  __syncthreads();
}

/// The rank whose tiles hold `tile`: the last one that starts at or before it.
__device__ int32_t RankOf(const int32_t* start, int32_t count, int32_t tile) {
  int32_t low = 0;
  int32_t high = count;
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (start[middle] <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ void WriteTiles(const TileList& list, const int32_t* start, int32_t count,
                           const Ranked& ranked) {
  const int32_t total = start[count];
  for (int32_t tile = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
       tile < list.capacity; tile += static_cast<int32_t>(gridDim.x * blockDim.x)) {
    QueryTile entry;
    if (tile < total) {
      const int32_t rank = RankOf(start, count, tile);
      const int32_t index = list.last_first ? start[rank + 1] - 1 - tile : tile - start[rank];
      entry = {ranked.first_token[rank], ranked.length[rank], index * list.rows,
               ranked.sequence[rank]};
    }
    list.tiles[tile] = entry;
  }
}

__device__ void WriteGroupedTiles(const GroupedTileList& list, const int32_t* start, int32_t count,
                                  const Ranked& ranked) {
  const int32_t total = start[count];
  for (int32_t tile = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
       tile < list.capacity; tile += static_cast<int32_t>(gridDim.x * blockDim.x)) {
    const bool valid = tile < total;
    const int32_t rank = valid ? RankOf(start, count, tile) : 0;
    list.valid[tile] = valid;
    list.sequence[tile] = valid ? ranked.sequence[rank] : 0;
    list.tile[tile] = valid ? tile - start[rank] : 0;
  }
}

__device__ void ZeroPadding(const PlanArgs& args, int32_t num_real_tokens) {
  const int64_t begin = num_real_tokens * args.out_width;
  const int64_t end = args.num_tokens * args.out_width;
  const int64_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t stride = gridDim.x * blockDim.x;
  constexpr int kVector = 8;  // elements of 16 bytes
  if (args.out_width % kVector == 0 && reinterpret_cast<uintptr_t>(args.out) % 16 == 0) {
    for (int64_t i = begin / kVector + thread; i < end / kVector; i += stride) {
      reinterpret_cast<uint4*>(args.out)[i] = uint4{0, 0, 0, 0};
    }
  } else {
    for (int64_t i = begin + thread; i < end; i += stride) {
      args.out[i] = __nv_bfloat16(0.0F);
    }
  }
}

__global__ void __launch_bounds__(kMostThreads)
    PlanKernel(const PlanArgs args, const AttentionPlan plan) {
  __shared__ Ranked ranked;
  const int32_t count = args.num_sequences;
  RankByLength(args.sequence_offsets, count, ranked);
  const int32_t length = ranked.length[threadIdx.x];
  const int32_t tiles[kLists] = {
      TilesOf(length, 1, plan.own.rows), TilesOf(length, 1, plan.fa3.rows),
      TilesOf(length, args.group, plan.fa2[0].rows), TilesOf(length, args.group, plan.fa2[1].rows)};
  SumTiles(tiles, ranked);
  WriteTiles(plan.own, ranked.start[0], count, ranked);
  WriteTiles(plan.fa3, ranked.start[1], count, ranked);
  WriteGroupedTiles(plan.fa2[0], ranked.start[2], count, ranked);
  WriteGroupedTiles(plan.fa2[1], ranked.start[3], count, ranked);
  ZeroPadding(args, args.sequence_offsets[count]);
}

}  // namespace

cudaError_t LaunchPlan(const PlanArgs& args, const AttentionPlan& plan, cudaStream_t stream) {
  // One CTA per 64 KB that might have to be zeroed, up to one per SM.
  constexpr int64_t kElementsPerCta = 32 * 1024;
  constexpr int64_t kMostCtas = 132;
  const int64_t wanted = (args.num_tokens * args.out_width + kElementsPerCta - 1) / kElementsPerCta;
  const auto ctas = static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, kMostCtas));
  const int32_t threads = std::max((args.num_sequences + 31) / 32 * 32, 128);
  PlanKernel<<<ctas, static_cast<unsigned>(threads), 0, stream>>>(args, plan);
  return cudaGetLastError();
}

}  // namespace bouquet::rose::cuda
