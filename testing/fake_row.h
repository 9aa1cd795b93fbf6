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

/// The row in a format other than float32: bytes that count up from the tokens' value, whatever
/// they would mean.
inline std::vector<std::byte> FakeRowBytes(std::span<const int32_t> ids, size_t count) {
  const auto first = static_cast<size_t>(FakeRow(ids, 1)[0]);
  std::vector<std::byte> row(count);
  for (size_t i = 0; i < count; ++i) {
    row[i] = static_cast<std::byte>(first + i);
  }
  return row;
}

}  // namespace bouquet::testing
