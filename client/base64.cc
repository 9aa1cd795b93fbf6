#include "client/base64.h"

#include <array>
#include <bit>
#include <cstdint>

namespace bouquet::client {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

constexpr uint8_t kInvalid = 0xFF;

constexpr std::array<uint8_t, 256> MakeDigits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kInvalid);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = MakeDigits();

}  // namespace

bool AppendBase64Floats(std::string_view text, std::vector<float>& out) {
  for (int i = 0; i < 2 && text.ends_with('='); ++i) {
    text.remove_suffix(1);
  }
  const size_t num_bytes = text.size() / 4 * 3 + text.size() % 4 * 6 / 8;
  if (text.size() % 4 == 1 || num_bytes % sizeof(float) != 0) {
    return false;
  }
  const size_t before = out.size();
  out.resize(before + num_bytes / sizeof(float));
  auto* bytes = reinterpret_cast<unsigned char*>(out.data() + before);
  size_t written = 0;
  uint32_t bits = 0;
  uint32_t bad = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t digit = kDigits[static_cast<uint8_t>(text[i])];
    bad |= digit & 0x80U;
    bits = bits << 6 | digit;
    if (i % 4 == 3) {
      bytes[written++] = static_cast<unsigned char>(bits >> 16);
      bytes[written++] = static_cast<unsigned char>(bits >> 8);
      bytes[written++] = static_cast<unsigned char>(bits);
      bits = 0;
    }
  }
  if (const size_t rest = text.size() % 4; rest == 2) {
    bytes[written] = static_cast<unsigned char>(bits >> 4);
  } else if (rest == 3) {
    bytes[written++] = static_cast<unsigned char>(bits >> 10);
    bytes[written] = static_cast<unsigned char>(bits >> 2);
  }
  return bad == 0;
}

}  // namespace bouquet::client
