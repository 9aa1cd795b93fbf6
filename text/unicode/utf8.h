#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace bouquet::text::unicode {

/// The offset of the first byte that is not valid UTF-8 (overlong forms, surrogates and code points
/// over U+10FFFF are not), or nullopt.
std::optional<size_t> FindInvalidUtf8(std::string_view text);

struct CodePoint {
  char32_t value;
  uint32_t num_bytes;
};

/// The code point at `text[0]`, which must be valid UTF-8 and not empty. On invalid input the value
/// is meaningless, but no byte past the end is read and num_bytes is 1..size.
inline CodePoint Decode(std::string_view text) {
  const auto byte = [&](size_t i) -> char32_t { return static_cast<unsigned char>(text[i]); };
  const char32_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  if (first < 0xE0 && text.size() >= 2) {
    return {((first & 0x1F) << 6) | (byte(1) & 0x3F), 2};
  }
  if (first < 0xF0 && text.size() >= 3) {
    return {((first & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F), 3};
  }
  if (text.size() >= 4) {
    return {((first & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) |
                (byte(3) & 0x3F),
            4};
  }
  return {0xFFFD, 1};
}

/// The start of the code point that ends at `text.size()`; `text` must not be empty.
inline size_t LastCodePointStart(std::string_view text) {
  size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
    --start;
  }
  return start;
}

inline void Append(char32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
    return;
  }
  char bytes[4];
  size_t size = 0;
  if (c < 0x800) {
    bytes[size++] = static_cast<char>(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      bytes[size++] = static_cast<char>(0xE0 | (c >> 12));
    } else {
      bytes[size++] = static_cast<char>(0xF0 | (c >> 18));
      bytes[size++] = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    }
    bytes[size++] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  }
  bytes[size++] = static_cast<char>(0x80 | (c & 0x3F));
  out.append(bytes, size);
}

/// How many code points valid UTF-8 has.
inline size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (const char c : text) {
    count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }
  return count;
}

// Eight ASCII bytes at a time, as one word.
inline constexpr uint64_t kEveryByte = 0x0101010101010101;
inline constexpr uint64_t kHighBits = 0x80 * kEveryByte;

inline uint64_t LoadWord(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

/// The length of the ASCII prefix of `text`.
inline size_t AsciiPrefix(std::string_view text) {
  size_t i = 0;
  while (i + 8 <= text.size() && (LoadWord(text.data() + i) & kHighBits) == 0) {
    i += 8;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) {
    ++i;
  }
  return i;
}

}  // namespace bouquet::text::unicode
