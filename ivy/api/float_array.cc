#include "ivy/api/float_array.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"

namespace bouquet::ivy::api {
namespace {

// Longest: "-1.17549435e-38" (15), "-1234567900000000" (17).
constexpr size_t kMaxFloatChars = 24;
// Written in blocks, so that the space for the worst case is never large.
constexpr size_t kBlock = 256;

}  // namespace

bool AllFinite(std::span<const float> values) {
  // The exponent's bits are all ones in what is not finite; the maximum vectorises.
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & kExponent);
  }
  return largest != kExponent;
}

void AppendFloatArray(std::span<const float> values, std::string& out) {
  CHECK(AllFinite(values));
  out.push_back('[');
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const float> block =
        values.subspan(begin, std::min(kBlock, values.size() - begin));
    const size_t size = out.size();
    out.resize(size + block.size() * kMaxFloatChars);
    char* to = out.data() + size;
    for (const float value : block) {
      to = fmt::format_to(to, FMT_COMPILE("{}"), value);
      *to++ = ',';
    }
    out.resize(static_cast<size_t>(to - out.data()));
  }
  if (values.empty()) {
    out.push_back(']');
  } else {
    out.back() = ']';
  }
}

}  // namespace bouquet::ivy::api
