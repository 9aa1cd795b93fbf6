#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace bouquet::text {

/// A merge that may be made: of the symbol `left` and the one behind it.
struct RankedMerge {
  uint32_t rank;
  int32_t left;
};

/// The merges of a long piece, lowest rank first and of one rank the leftmost first. A heap would
/// take its logarithm's worth of cache misses for each; here a rank's merges wait in a list, are
/// put in order when their turn comes, and the turn moves on to higher ranks only. That is linear
/// in practice, because a token's merges rank behind the one that made it wherever merges were
/// learned; those that do not go through a heap. For one thread; keeps its buffers.
class BpeQueue {
 public:
  /// Ready for merges of ranks 0 .. num_ranks - 1. It must be empty.
  void Begin(size_t num_ranks);
  void Push(RankedMerge merge);
  /// The next one; nullopt when it is empty.
  std::optional<RankedMerge> Pop();

  /// Bytes that the buffers hold.
  size_t capacity_bytes() const;
  /// Gives them back. It must be empty.
  void Release();

 private:
  static constexpr int32_t kNone = -1;
  struct Node {
    int32_t left;
    int32_t next;
  };

  bool StartNextRank();
  void TakeList(uint32_t rank);

  std::vector<int32_t> first_;      // [num_ranks] of the list of each rank, last pushed first
  std::vector<uint64_t> occupied_;  // a bit a rank
  std::vector<Node> nodes_;
  int32_t free_ = kNone;  // list of unused nodes

  int64_t rank_ = kNone;           // whose turn it is
  std::vector<int32_t> turn_;      // its merges, the next one last
  std::vector<RankedMerge> late_;  // a heap of merges that rank no higher than `rank_`
};

}  // namespace bouquet::text
