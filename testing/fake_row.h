#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bouquet::testing {

/// The row that the fake engine and the fake replica give to these ids: a value that no other order
/// of tokens is likely to have, then its neighbours.
inline std::vector<float> FakeRow(std::span<const int32_t> ids, uint32_t dimensions) {
  int64_t sum = 0;
  for (const int32_t id : ids) {
    sum = (sum * 31 + id + 7) % 65521;
  }
  std::vector<float> row(dimensions);
  for (uint32_t d = 0; d < dimensions; ++d) {
    row[d] = static_cast<float>(sum) + static_cast<float>(d) / 64;
  }
  return row;
}

}  // namespace bouquet::testing
