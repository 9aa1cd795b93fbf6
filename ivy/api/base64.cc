#include "ivy/api/base64.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace bouquet::ivy::api {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

using CharPair = std::array<char, 2>;

/// 12 bits → two characters: half the look-ups of one character at a time, and 8 KB stay in L1.
constexpr std::array<CharPair, 4096> kPairs = [] {
  std::array<CharPair, 4096> pairs{};
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = {kAlphabet[i >> 6], kAlphabet[i & 63]};
  }
  return pairs;
}();

}  // namespace

void AppendBase64(std::span<const std::byte> data, std::string& out) {
  const size_t begin = out.size();
  out.resize(begin + (data.size() + 2) / 3 * 4);
  char* to = out.data() + begin;
  const auto* from = reinterpret_cast<const uint8_t*>(data.data());
  const size_t whole = data.size() / 3 * 3;
  for (size_t i = 0; i < whole; i += 3, to += 4) {
    const uint32_t bits = (static_cast<uint32_t>(from[i]) << 16) |
                          (static_cast<uint32_t>(from[i + 1]) << 8) | from[i + 2];
    std::memcpy(to, kPairs[bits >> 12].data(), 2);
    std::memcpy(to + 2, kPairs[bits & 4095].data(), 2);
  }
  if (data.size() - whole == 1) {
    std::memcpy(to, kPairs[static_cast<size_t>(from[whole]) << 4].data(), 2);
    std::memcpy(to + 2, "==", 2);
  } else if (data.size() - whole == 2) {
    const uint32_t bits =
        (static_cast<uint32_t>(from[whole]) << 10) | (static_cast<uint32_t>(from[whole + 1]) << 2);
    std::memcpy(to, kPairs[bits >> 6].data(), 2);
    to[2] = kAlphabet[bits & 63];
    to[3] = '=';
  }
}

void AppendBase64Floats(std::span<const float> values, std::string& out) {
  if constexpr (std::endian::native == std::endian::little) {
    AppendBase64(std::as_bytes(values), out);
  } else {
    std::vector<uint32_t> swapped(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      swapped[i] = __builtin_bswap32(std::bit_cast<uint32_t>(values[i]));
    }
    AppendBase64(std::as_bytes(std::span<const uint32_t>(swapped)), out);
  }
}

}  // namespace bouquet::ivy::api
