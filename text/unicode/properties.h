#pragma once

#include <cstdint>

namespace bouquet::text::unicode {

/// What the reference library holds of a code point (make_tables.py says by which Unicode version),
/// as bits. The generated tables are in this order.
enum Property : uint16_t {
  kWhitespace = 1 << 0,
  kControl = 1 << 1,  // removed by BERT's cleaning: Cc, Cf, Co, NUL and U+FFFD, but not \t \n \r
  kPunctuation = 1 << 2,     // P*, and all ASCII punctuation and symbols
  kNonspacingMark = 1 << 3,  // Mn
  kMark = 1 << 4,            // Mn, Mc, Me
  kWord = 1 << 5,            // \w
  kNumeric = 1 << 6,         // Nd, Nl, No
  kLowers = 1 << 7,          // is not its own lower case
  kDecomposes = 1 << 8,      // canonically; Hangul syllables have no bit
  kDecomposesCompatibly = 1 << 9,
  kReorders = 1 << 10,  // its combining class is not 0
  // \p{L}, \p{N} and \s of the engine that runs a pre-tokenizer's regular expressions.
  kRegexLetter = 1 << 11,
  kRegexNumber = 1 << 12,
  kRegexSpace = 1 << 13,
};

/// The Property bits of `c`. `c` must be under 0x110000.
uint16_t Properties(char32_t c);
inline bool Has(char32_t c, uint16_t properties) { return (Properties(c) & properties) != 0; }

/// Canonical combining class.
uint8_t CombiningClass(char32_t c);

/// The lower case of `c`, by itself (no rule for a final sigma). Calls `emit` once or, for U+0130,
/// twice.
char32_t LowercaseOfOne(char32_t c);  // not for U+0130
template <class Emit>
void Lowercase(char32_t c, Emit emit) {
  if (c == 0x130) {
    emit(U'i');
    emit(char32_t{0x307});
  } else {
    emit(LowercaseOfOne(c));
  }
}

/// BERT's "Chinese characters": the blocks of CJK ideographs that the reference lists. That one of
/// its ranges starts at U+2B920 where the block starts at U+2B820 is part of the contract.
inline bool IsChinese(char32_t c) {
  if (c < 0x3400) {
    return false;
  }
  return (c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

}  // namespace bouquet::text::unicode
