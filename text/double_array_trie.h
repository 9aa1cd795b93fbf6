#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace bouquet::text {

/// Byte strings → values, for walking one byte at a time (Aoe 1989). Immutable after Build; a step
/// is two dependent loads from one array. Thread: any.
class DoubleArrayTrie {
 public:
  static constexpr int32_t kNoValue = -1;
  using Entry = std::pair<std::string_view, int32_t>;  // key, value >= 0

  DoubleArrayTrie() : nodes_(1) {}
  /// Of entries with one key the last wins. Empty keys are left out.
  static DoubleArrayTrie Build(const std::vector<Entry>& entries);

  using Node = uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kDead = UINT32_MAX;

  /// The child of `node` by `byte`, or kDead. `node` must not be kDead.
  Node Step(Node node, unsigned char byte) const {
    const uint32_t child = nodes_[node].base + byte;
    return child < nodes_.size() && nodes_[child].parent == node ? child : kDead;
  }
  Node Walk(Node node, std::string_view bytes) const {
    for (const char c : bytes) {
      if (node == kDead) {
        return kDead;
      }
      node = Step(node, static_cast<unsigned char>(c));
    }
    return node;
  }
  /// The value of the key that ends at `node`, or kNoValue.
  int32_t Value(Node node) const { return nodes_[node].value; }

  /// The value of `key`, or kNoValue.
  int32_t Find(std::string_view key) const {
    const Node node = Walk(kRoot, key);
    return node == kDead ? kNoValue : Value(node);
  }

  struct Match {
    size_t num_bytes;  // 0 when nothing matches
    int32_t value;
  };
  /// The longest non-empty key below `from` that `text` starts with.
  Match LongestPrefix(std::string_view text, Node from = kRoot) const {
    Match longest = {0, kNoValue};
    Node node = from;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Step(node, static_cast<unsigned char>(text[i]));
      if (node == kDead) {
        break;
      }
      if (nodes_[node].value != kNoValue) {
        longest = {i + 1, nodes_[node].value};
      }
    }
    return longest;
  }

  size_t num_keys() const { return num_keys_; }

 private:
  class Builder;

  struct Slot {
    uint32_t base = 0;
    uint32_t parent = kDead;
    int32_t value = kNoValue;
  };
  std::vector<Slot> nodes_;
  size_t num_keys_ = 0;
};

}  // namespace bouquet::text
