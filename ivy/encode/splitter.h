#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bouquet::ivy {

/// A run of a request's inputs that goes to one replica together.
struct ChunkRange {
  size_t first = 0;  // index of the first input
  size_t count = 0;
  int64_t num_tokens = 0;

  bool operator==(const ChunkRange&) const = default;
};

/// Cuts inputs into runs of at most `chunk_tokens`; a longer input is a run of its own. Every input
/// is in exactly one run, in order. Pure.
std::vector<ChunkRange> SplitByTokens(std::span<const int32_t> token_counts, int64_t chunk_tokens);

}  // namespace bouquet::ivy
