#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/source_map.h"
#include "text/unicode/properties.h"

namespace bouquet::text::unicode {

enum class NormalizationForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// A character whose place is not settled yet, because marks after it may sort before it.
struct PendingMark {
  char32_t value;
  uint8_t combining_class;
  uint8_t is_added = 0;   // not the first of the characters that one decomposes to
  uint32_t position = 0;  // SortMarks's own
};

/// Sorts by combining class and keeps the order of equals. In place: it does not allocate, and long
/// runs of marks, which only hostile text has, cost n log n.
void SortMarks(std::vector<PendingMark>& marks);

/// Buffers of Normalize, kept from call to call.
struct NormalizationScratch {
  std::vector<PendingMark> marks;
  std::u32string decomposed;
  std::vector<int32_t> claims;      // only where sources are asked for: see source_map.h
  std::vector<uint32_t> unclaimed;  // the same, of bert_normalizer.cc
};

/// Writes `text` (valid UTF-8) in the form given, by the Unicode version that the reference uses
/// (UAX 15, version 9.0), to `out`, which is overwritten. Sources: SourceMap or NoSources.
template <class Sources>
void Normalize(std::string_view text, NormalizationForm form, NormalizationScratch& scratch,
               Sources sources, std::string& out);

/// The full canonical decomposition of a code point that has kDecomposes, in canonical order.
std::u32string_view CanonicalDecomposition(char32_t c);
/// The same by compatibility, for one that has kDecomposesCompatibly.
std::u32string_view CompatibilityDecomposition(char32_t c);

// Hangul syllables are decomposed and composed by arithmetic (Unicode, section 3.12).
inline constexpr char32_t kHangulFirst = 0xAC00;
inline constexpr char32_t kHangulCount = 11172;
inline constexpr char32_t kLeadFirst = 0x1100;
inline constexpr char32_t kVowelFirst = 0x1161;
inline constexpr char32_t kTrailFirst = 0x11A7;  // stands for "no trailing consonant"
inline constexpr char32_t kLeadCount = 19;
inline constexpr char32_t kVowelCount = 21;
inline constexpr char32_t kTrailCount = 28;

inline bool IsHangulSyllable(char32_t c) { return c - kHangulFirst < kHangulCount; }

template <class Emit>
void DecomposeHangul(char32_t c, Emit emit) {
  const char32_t index = c - kHangulFirst;
  emit(kLeadFirst + index / (kVowelCount * kTrailCount));
  emit(kVowelFirst + index / kTrailCount % kVowelCount);
  if (index % kTrailCount != 0) {
    emit(kTrailFirst + index % kTrailCount);
  }
}

}  // namespace bouquet::text::unicode
