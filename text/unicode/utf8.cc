#include "text/unicode/utf8.h"

namespace bouquet::text::unicode {
namespace {

/// Bytes of the code point that starts with `first`; 0 for a byte that cannot start one.
size_t LengthFromFirstByte(unsigned char first) {
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xC2) {  // a continuation byte, or an overlong form of ASCII
    return 0;
  }
  if (first < 0xE0) {
    return 2;
  }
  if (first < 0xF0) {
    return 3;
  }
  return first < 0xF5 ? 4 : 0;
}

bool IsWellFormed(std::string_view bytes) {
  for (size_t i = 1; i < bytes.size(); ++i) {
    if ((static_cast<unsigned char>(bytes[i]) & 0xC0) != 0x80) {
      return false;
    }
  }
  // The first two bytes tell overlong forms, surrogates and code points over U+10FFFF.
  const auto first = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes[1]);
  switch (first) {
    case 0xE0: return second >= 0xA0;
    case 0xED: return second < 0xA0;
    case 0xF0: return second >= 0x90;
    case 0xF4: return second < 0x90;
    default: return true;
  }
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(std::string_view text) {
  size_t i = 0;
  while (true) {
    i += AsciiPrefix(text.substr(i));
    if (i == text.size()) {
      return std::nullopt;
    }
    // One script usually goes on for a while, hence the inner loop.
    while (i < text.size() && static_cast<unsigned char>(text[i]) >= 0x80) {
      const size_t length = LengthFromFirstByte(static_cast<unsigned char>(text[i]));
      if (length == 0 || length > text.size() - i || !IsWellFormed(text.substr(i, length))) {
        return i;
      }
      i += length;
    }
  }
}

}  // namespace bouquet::text::unicode
