#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bouquet::text {

/// Token strings by id. Ids may have holes. Thread: any, once filled.
class Vocabulary {
 public:
  /// More than any model has; a file with larger ids is refused, since memory grows with the id.
  static constexpr int32_t kMaxTokens = 1 << 22;

  /// `id` must be in 0 .. kMaxTokens - 1. A second string for an id replaces the first.
  void Set(int32_t id, std::string_view piece);
  /// Empty for an unknown id.
  std::string_view Piece(int32_t id) const;
  bool Has(int32_t id) const {
    return id >= 0 && id < size() && places_[static_cast<size_t>(id)].offset != kNowhere;
  }
  /// One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(places_.size()); }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Place {
    uint32_t offset = kNowhere;
    uint32_t num_bytes = 0;
  };
  std::string bytes_;  // all strings end to end: one allocation, not one a token
  std::vector<Place> places_;
};

}  // namespace bouquet::text
