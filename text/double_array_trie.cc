#include "text/double_array_trie.h"

#include <algorithm>
#include <cstddef>

namespace bouquet::text {

/// Places the nodes of sorted keys, parents first. Free slots form a ring, so that the search for a
/// base that fits all children of a node skips what is taken.
class DoubleArrayTrie::Builder {
 public:
  explicit Builder(const std::vector<Entry>& entries) : entries_(entries) {
    Grow(1024);
    Take(kRoot, kDead);
  }

  std::vector<Slot> Build() {
    struct Range {
      size_t begin, end, depth;
      Node node;
    };
    std::vector<Range> open = {{0, entries_.size(), 0, kRoot}};
    std::vector<Range> children;
    while (!open.empty()) {
      const Range range = open.back();
      open.pop_back();
      size_t begin = range.begin;
      if (begin < range.end && entries_[begin].first.size() == range.depth) {
        slots_[range.node].value = entries_[begin].second;  // keys are distinct: only one ends here
        ++begin;
      }
      children.clear();
      labels_.clear();
      while (begin < range.end) {
        const auto label = static_cast<unsigned char>(entries_[begin].first[range.depth]);
        size_t end = begin + 1;
        while (end < range.end &&
               static_cast<unsigned char>(entries_[end].first[range.depth]) == label) {
          ++end;
        }
        labels_.push_back(label);
        children.push_back({begin, end, range.depth + 1, 0});
        begin = end;
      }
      if (children.empty()) {
        continue;
      }
      const uint32_t base = FindBase();
      slots_[range.node].base = base;
      for (size_t i = 0; i < children.size(); ++i) {
        children[i].node = base + labels_[i];
        Take(children[i].node, range.node);
      }
      open.insert(open.end(), children.rbegin(), children.rend());
    }
    while (slots_.size() > 1 && slots_.back().parent == kDead) {
      slots_.pop_back();
    }
    return std::move(slots_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  bool IsFree(uint32_t slot) const { return slot >= slots_.size() || free_[slot]; }

  /// A base under which a slot is free for each of `labels_`.
  uint32_t FindBase() {
    // A node with many children looks at a bounded number of free slots before it takes fresh ones:
    // it keeps building linear, at a few per cent of space.
    constexpr int kMaxTries = 16;
    int tries = 0;
    for (uint32_t slot = first_free_; slot != kNone && tries < kMaxTries; slot = next_[slot]) {
      if (slot < labels_.front()) {
        continue;
      }
      ++tries;
      const uint32_t base = slot - labels_.front();
      if (std::ranges::all_of(labels_, [&](unsigned char l) { return IsFree(base + l); })) {
        Grow(base + labels_.back() + 1);
        return base;
      }
    }
    const uint32_t base = end_;
    Grow(base + 256);
    return base;
  }

  void Grow(size_t size) {
    const size_t old_size = slots_.size();
    if (size <= old_size) {
      return;
    }
    size = std::max(size, old_size + old_size / 2);
    slots_.resize(size);
    free_.resize(size, true);
    next_.resize(size);
    previous_.resize(size);
    for (auto slot = static_cast<uint32_t>(old_size); slot < size; ++slot) {
      next_[slot] = kNone;
      previous_[slot] = last_free_;
      (last_free_ == kNone ? first_free_ : next_[last_free_]) = slot;
      last_free_ = slot;
    }
  }

  void Take(uint32_t slot, Node parent) {
    (previous_[slot] == kNone ? first_free_ : next_[previous_[slot]]) = next_[slot];
    (next_[slot] == kNone ? last_free_ : previous_[next_[slot]]) = previous_[slot];
    free_[slot] = false;
    slots_[slot].parent = parent;
    end_ = std::max(end_, slot + 1);
  }

  const std::vector<Entry>& entries_;
  std::vector<Slot> slots_;
  std::vector<bool> free_;
  std::vector<uint32_t> next_;      // free slots only
  std::vector<uint32_t> previous_;  // free slots only
  uint32_t first_free_ = kNone;
  uint32_t last_free_ = kNone;
  uint32_t end_ = 0;                   // everything from here on is free
  std::vector<unsigned char> labels_;  // of the node in hand, rising
};

namespace {

/// 8 bytes of a key as a number that compares as they do; shorter keys are filled up with 0.
uint64_t BytesAsNumber(std::string_view key, size_t begin) {
  uint64_t number = 0;
  for (size_t i = begin; i < begin + 8; ++i) {
    number = number << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0U);
  }
  return number;
}

/// A key as it is sorted: by its first 16 bytes, which hold the whole of most.
struct SortKey {
  uint64_t first;
  uint64_t second;
  uint32_t index;
};

/// The order of the keys, of equal ones that of the entries. Most comparisons look at numbers that
/// lie side by side, not at bytes all over the file.
std::vector<uint32_t> SortedOrder(const std::vector<DoubleArrayTrie::Entry>& entries) {
  std::vector<SortKey> order;
  order.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    order.push_back(
        {BytesAsNumber(key, 0), BytesAsNumber(key, 8), static_cast<uint32_t>(order.size())});
  }
  std::ranges::sort(order, [&](const SortKey& a, const SortKey& b) {
    if (a.first != b.first) {
      return a.first < b.first;
    }
    if (a.second != b.second) {
      return a.second < b.second;
    }
    const int compared = entries[a.index].first.compare(entries[b.index].first);
    return compared != 0 ? compared < 0 : a.index < b.index;
  });
  std::vector<uint32_t> indices;
  indices.reserve(order.size());
  for (const SortKey& key : order) {
    indices.push_back(key.index);
  }
  return indices;
}

}  // namespace

DoubleArrayTrie DoubleArrayTrie::Build(const std::vector<Entry>& entries) {
  std::vector<Entry> distinct;
  distinct.reserve(entries.size());
  for (const uint32_t index : SortedOrder(entries)) {
    const Entry& entry = entries[index];
    if (entry.first.empty()) {
      continue;
    }
    if (!distinct.empty() && distinct.back().first == entry.first) {
      distinct.back() = entry;
    } else {
      distinct.push_back(entry);
    }
  }
  DoubleArrayTrie trie;
  trie.nodes_ = Builder(distinct).Build();
  trie.num_keys_ = distinct.size();
  return trie;
}

}  // namespace bouquet::text
