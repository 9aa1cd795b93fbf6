#include "text/unicode/utf8.h"

#include <gtest/gtest.h>

namespace bouquet::text::unicode {
namespace {

// Decodes by the definition (Unicode, table 3-6), with no shortcuts: what each byte adds, then
// whether the result may be written like this.
bool IsValidByDefinition(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t size = first < 0x80             ? 1
                        : (first & 0xE0) == 0xC0 ? 2
                        : (first & 0xF0) == 0xE0 ? 3
                        : (first & 0xF8) == 0xF0 ? 4
                                                 : 0;
    if (size == 0 || i + size > text.size()) {
      return false;
    }
    char32_t value = size == 1 ? first : first & (0x7FU >> size);
    for (size_t k = 1; k < size; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) {
        return false;
      }
      value = value << 6 | (next & 0x3F);
    }
    const char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < smallest[size] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      return false;
    }
    i += size;
  }
  return true;
}

TEST(Utf8Test, JudgesEveryShortByteSequenceByTheDefinition) {
  // All of one and two bytes, then all leads with the interesting trailing bytes.
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const char bytes[] = {static_cast<char>(a), static_cast<char>(b)};
      const std::string_view text(bytes, 2);
      EXPECT_EQ(!FindInvalidUtf8(text).has_value(), IsValidByDefinition(text)) << a << ' ' << b;
    }
  }
  const unsigned char interesting[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  for (unsigned a = 0x80; a < 256; ++a) {
    for (const unsigned char b : interesting) {
      for (const unsigned char c : interesting) {
        for (const unsigned char d : interesting) {
          const char bytes[] = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                                static_cast<char>(d)};
          const std::string_view text(bytes, 4);
          EXPECT_EQ(!FindInvalidUtf8(text).has_value(), IsValidByDefinition(text));
        }
      }
    }
  }
}

TEST(Utf8Test, SaysWhereTheFirstBadByteIs) {
  EXPECT_EQ(FindInvalidUtf8(std::string(100, 'a') + "é" + "\x80"), 102U);
  EXPECT_EQ(FindInvalidUtf8("é中😀\xF0\x9F\x98"), 9U);
  EXPECT_EQ(FindInvalidUtf8(std::string(1000, 'a')), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8(""), std::nullopt);
}

TEST(Utf8Test, WritesAndReadsEveryCodePoint) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) {
      continue;
    }
    text.clear();
    Append(c, text);
    const CodePoint decoded = Decode(text);
    ASSERT_EQ(decoded.value, c);
    ASSERT_EQ(decoded.num_bytes, text.size());
    ASSERT_EQ(FindInvalidUtf8(text), std::nullopt);
    ASSERT_EQ(LastCodePointStart("a" + text), 1U);
    ASSERT_EQ(CountCodePoints(text + "é"), 2U);
  }
}

}  // namespace
}  // namespace bouquet::text::unicode
