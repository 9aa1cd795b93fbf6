#include "text/unicode/properties.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace bouquet::text::unicode {
namespace {

#include "text/unicode/properties_tables.inc"

constexpr size_t kBlockBits = 7;

uint8_t Kind(char32_t c) {
  return kPropertyKinds[(size_t{kPropertyBlocks[c >> kBlockBits]} << kBlockBits) |
                        (c & ((1U << kBlockBits) - 1))];
}

}  // namespace

uint16_t Properties(char32_t c) { return kFlags[Kind(c)]; }

uint8_t CombiningClass(char32_t c) { return kCombiningClasses[Kind(c)]; }

char32_t LowercaseOfOne(char32_t c) {
  struct Range {
    int32_t first, last, step, distance;
  };
  constexpr size_t kNumRanges = std::size(kLowercaseRanges) / 4;
  const auto range_at = [](size_t i) {
    const int32_t* r = kLowercaseRanges + 4 * i;
    return Range{r[0], r[1], r[2], r[3]};
  };
  const auto wanted = static_cast<int32_t>(c);
  size_t low = 0;
  size_t high = kNumRanges;
  while (low < high) {  // the first range that does not end before c
    const size_t middle = (low + high) / 2;
    if (range_at(middle).last < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == kNumRanges) {
    return c;
  }
  const Range range = range_at(low);
  const bool inside = range.first <= wanted && (wanted - range.first) % range.step == 0;
  return inside ? static_cast<char32_t>(wanted + range.distance) : c;
}

}  // namespace bouquet::text::unicode
