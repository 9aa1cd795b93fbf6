#pragma once

#include <algorithm>
#include <cstdint>

#include "rose/backend/cuda/attention/attention_shape.h"

namespace bouquet::rose::cuda {

constexpr int32_t kMaxPlannedSequences = 512;
constexpr int32_t kMaxPlannedTokens = 65536;

/// Consecutive query rows of one sequence: the work of one CTA for one head.
struct alignas(16) QueryTile {
  int32_t first_token = 0;  // of the sequence, in the step
  int32_t length = 0;       // of the sequence, in tokens; 0: nothing to do
  int32_t first_row = 0;    // of the tile, in the sequence
  int32_t sequence = 0;
};

/// A list of tiles in device memory; a capacity of 0 leaves it out.
struct TileList {
  QueryTile* tiles = nullptr;  // [capacity]
  int32_t capacity = 0;
  int32_t rows = 0;         // of a tile
  bool last_first = false;  // tiles of a sequence from its end: under a causal mask they see most
};

/// The same as FlashInfer's FA2 template reads it. The heads of one group lie side by side in a
/// tile, so that a tile of `rows` holds rows / group tokens.
struct GroupedTileList {
  int32_t* sequence = nullptr;  // [capacity]
  int32_t* tile = nullptr;      // [capacity], within the sequence
  bool* valid = nullptr;        // [capacity]
  int32_t capacity = 0;
  int32_t rows = 0;
};

/// The work lists of one step in device memory: longest sequence first, since tiles start in order.
struct AttentionPlan {
  TileList own;                 // own kernels
  TileList fa3;                 // FlashInfer FA3
  GroupedTileList fa2[2];       // FlashInfer FA2, tiles of 64 and 128 rows
  int32_t* zeros = nullptr;     // [largest capacity of fa2]: no kv range is split
  int32_t* kv_chunk = nullptr;  // [1]: longer than any sequence
};

/// An upper bound of the tiles in a step of these sizes; `group` heads share a tile.
constexpr int32_t MostTiles(const AttentionSizes& sizes, int32_t group, int32_t rows) {
  const int64_t by_tokens =
      static_cast<int64_t>(sizes.num_tokens) * group / rows + sizes.num_sequences;
  const int64_t by_length = (static_cast<int64_t>(sizes.longest_sequence) * group + rows - 1) /
                            rows * sizes.num_sequences;
  return static_cast<int32_t>(std::min(by_tokens, by_length));
}

}  // namespace bouquet::rose::cuda
