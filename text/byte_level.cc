#include "text/byte_level.h"

#include <array>

#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<uint16_t, 256> MakeCharacters() {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    characters[byte] = StandsForItself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}
constexpr std::array<uint16_t, 256> kCharacters = MakeCharacters();
constexpr char32_t kLastCharacter = 0x143;

constexpr std::array<int16_t, kLastCharacter + 1> MakeBytes() {
  std::array<int16_t, kLastCharacter + 1> bytes{};
  bytes.fill(-1);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<int16_t, kLastCharacter + 1> kBytes = MakeBytes();

}  // namespace

std::optional<uint8_t> ByteOfCharacter(char32_t c) {
  if (c > kLastCharacter || kBytes[c] < 0) {
    return std::nullopt;
  }
  return static_cast<uint8_t>(kBytes[c]);
}

bool AppendBytesOfToken(std::string_view token, std::string& bytes) {
  const size_t size_before = bytes.size();
  while (!token.empty()) {
    const auto [c, num_bytes] = unicode::Decode(token);
    const std::optional<uint8_t> byte = ByteOfCharacter(c);
    if (!byte) {
      bytes.resize(size_before);
      return false;
    }
    bytes.push_back(static_cast<char>(*byte));
    token.remove_prefix(num_bytes);
  }
  return true;
}

std::string TokenOfByte(uint8_t byte) {
  std::string token;
  unicode::Append(kCharacters[byte], token);
  return token;
}

}  // namespace bouquet::text
