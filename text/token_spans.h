#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_span.h"

namespace bouquet::text {

/// How many characters at the ends of a token are whitespace, or "Ġ", as byte_level.h spells it.
struct SurroundingSpaces {
  size_t num_leading = 0;
  size_t num_trailing = 0;
};
SurroundingSpaces CountSpacesAround(std::string_view token);

/// What the tokens of a text stand for, in its bytes. Spans begin and end between characters; they
/// may overlap (the tokens of one character's bytes all stand for it), and need not cover the text.
struct TokenSpans {
  /// An added token that was found in the text, with the whitespace that it took along.
  struct Added {
    size_t index;  // in `spans`
    SurroundingSpaces spaces;
  };
  std::vector<ByteSpan> spans;  // one a token
  std::vector<Added> added;     // by rising index

  void clear() {
    spans.clear();
    added.clear();
  }
};

/// The characters (code points) begin .. end of a text.
struct CharacterSpan {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const CharacterSpan&) const = default;
};

/// Spans of `text` (valid UTF-8) counted in characters, as Python indexes strings. A byte within a
/// character counts as that character.
std::vector<CharacterSpan> CountedInCharacters(std::string_view text,
                                               const std::vector<ByteSpan>& spans);

/// `span` of `text` without its first and its last so many characters, but not less than empty. As
/// in the reference, nothing is cut at the end of a span that ends before the text has so many.
ByteSpan WithoutCharacters(std::string_view text, ByteSpan span, size_t num_first, size_t num_last);

}  // namespace bouquet::text
