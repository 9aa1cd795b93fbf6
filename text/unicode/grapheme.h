#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bouquet::text::unicode {

/// What decides where a grapheme cluster ends, of one code point: Grapheme_Cluster_Break,
/// Extended_Pictographic and Indic_Conjunct_Break in one. The generated table is in this order.
enum class GraphemeClass : uint8_t {
  kOther,
  kCarriageReturn,
  kLineFeed,
  kControl,
  kExtend,      // not in conjuncts
  kInCbExtend,  // Extend that may stand in a conjunct
  kInCbLinker,  // Extend that links two consonants
  kJoiner,      // zero-width joiner; may stand in a conjunct
  kSpacingMark,
  kPrepend,
  kRegionalIndicator,
  kHangulL,
  kHangulV,
  kHangulT,
  kHangulLv,
  kHangulLvt,
  kPictographic,
  kConsonant,
};

/// `c` must be under 0x110000.
GraphemeClass ClassOf(char32_t c);

/// The length in bytes of the extended grapheme cluster that `text` (valid UTF-8, not empty) begins
/// with (UAX 29, Unicode 17.0, as the reference has it).
size_t FirstGraphemeCluster(std::string_view text);

}  // namespace bouquet::text::unicode
