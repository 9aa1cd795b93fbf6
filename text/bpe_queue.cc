#include "text/bpe_queue.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"

namespace bouquet::text {
namespace {

constexpr size_t kWordBits = 64;

bool ComesLater(const RankedMerge& a, const RankedMerge& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

void BpeQueue::Begin(size_t num_ranks) {
  if (first_.size() < num_ranks) {
    first_.resize(num_ranks, kNone);
    occupied_.resize((num_ranks + kWordBits - 1) / kWordBits, 0);
  }
  nodes_.clear();
  free_ = kNone;
  rank_ = kNone;
}

void BpeQueue::Push(RankedMerge merge) {
  if (merge.rank <= rank_) {
    late_.push_back(merge);
    std::ranges::push_heap(late_, ComesLater);
    return;
  }
  int32_t node = free_;
  if (node == kNone) {
    node = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_ = nodes_[static_cast<size_t>(node)].next;
  }
  nodes_[static_cast<size_t>(node)] = {merge.left, first_[merge.rank]};
  first_[merge.rank] = node;
  occupied_[merge.rank / kWordBits] |= uint64_t{1} << merge.rank % kWordBits;
}

std::optional<RankedMerge> BpeQueue::Pop() {
  if (turn_.empty() && late_.empty() && !StartNextRank()) {
    return std::nullopt;
  }
  const bool takes_late =
      turn_.empty() ||
      (!late_.empty() && ComesLater({static_cast<uint32_t>(rank_), turn_.back()}, late_.front()));
  if (!takes_late) {
    const RankedMerge merge{static_cast<uint32_t>(rank_), turn_.back()};
    turn_.pop_back();
    return merge;
  }
  const RankedMerge merge = late_.front();
  std::ranges::pop_heap(late_, ComesLater);
  late_.pop_back();
  return merge;
}

bool BpeQueue::StartNextRank() {
  for (size_t word = static_cast<size_t>(rank_ + 1) / kWordBits; word < occupied_.size(); ++word) {
    if (occupied_[word] != 0) {
      // No rank up to `rank_` has a list, so the lowest bit is the one.
      rank_ = static_cast<int64_t>(word * kWordBits) + std::countr_zero(occupied_[word]);
      TakeList(static_cast<uint32_t>(rank_));
      return true;
    }
  }
  return false;
}

void BpeQueue::TakeList(uint32_t rank) {
  int32_t last = kNone;
  for (int32_t node = first_[rank]; node != kNone; node = nodes_[static_cast<size_t>(node)].next) {
    turn_.push_back(nodes_[static_cast<size_t>(node)].left);
    last = node;
  }
  nodes_[static_cast<size_t>(last)].next = free_;
  free_ = first_[rank];
  first_[rank] = kNone;
  occupied_[rank / kWordBits] &= ~(uint64_t{1} << rank % kWordBits);
  if (!std::ranges::is_sorted(turn_, std::greater<>())) {
    std::ranges::sort(turn_, std::greater<>());
  }
}

size_t BpeQueue::capacity_bytes() const {
  return first_.capacity() * sizeof(int32_t) + occupied_.capacity() * sizeof(uint64_t) +
         nodes_.capacity() * sizeof(Node) + turn_.capacity() * sizeof(int32_t) +
         late_.capacity() * sizeof(RankedMerge);
}

void BpeQueue::Release() {
  CHECK(turn_.empty() && late_.empty());
  *this = {};
}

}  // namespace bouquet::text
