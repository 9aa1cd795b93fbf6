#pragma once

#include <cstdint>

namespace bouquet::text {

/// The bytes begin .. end of a text.
struct ByteSpan {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const ByteSpan&) const = default;
};

}  // namespace bouquet::text
