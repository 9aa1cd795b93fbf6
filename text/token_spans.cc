#include "text/token_spans.h"

#include <algorithm>

#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {

SurroundingSpaces CountSpacesAround(std::string_view token) {
  constexpr char32_t kSpelledSpace = 0x120;
  const auto is_space = [](std::string_view at) {
    const char32_t c = unicode::Decode(at).value;
    return c == kSpelledSpace || unicode::Has(c, unicode::kWhitespace);
  };
  SurroundingSpaces spaces;
  for (std::string_view rest = token; !rest.empty() && is_space(rest); ++spaces.num_leading) {
    rest.remove_prefix(unicode::Decode(rest).num_bytes);
  }
  for (std::string_view rest = token; !rest.empty(); ++spaces.num_trailing) {
    const size_t last = unicode::LastCodePointStart(rest);
    if (!is_space(rest.substr(last))) {
      break;
    }
    rest = rest.substr(0, last);
  }
  return spaces;
}

std::vector<CharacterSpan> CountedInCharacters(std::string_view text,
                                               const std::vector<ByteSpan>& spans) {
  std::vector<uint32_t> characters;  // by byte: the index of the character that it belongs to
  characters.reserve(text.size());
  uint32_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    const uint32_t num_bytes = unicode::Decode(text.substr(i)).num_bytes;
    characters.insert(characters.end(), num_bytes, count);
    i += num_bytes;
  }
  const auto character = [&](uint32_t byte) {
    return byte < characters.size() ? characters[byte] : count;
  };
  std::vector<CharacterSpan> counted;
  counted.reserve(spans.size());
  for (const ByteSpan& span : spans) {
    counted.push_back({character(span.begin), character(span.end)});
  }
  return counted;
}

ByteSpan WithoutCharacters(std::string_view text, ByteSpan span, size_t num_first,
                           size_t num_last) {
  for (size_t i = 0; i < num_first && span.begin < span.end; ++i) {
    span.begin += unicode::Decode(text.substr(span.begin)).num_bytes;
  }
  uint32_t end = span.end;
  for (size_t i = 0; i < num_last; ++i) {
    if (end == 0) {
      return span;
    }
    end = static_cast<uint32_t>(unicode::LastCodePointStart(text.substr(0, end)));
  }
  span.end = std::max(end, span.begin);
  return span;
}

}  // namespace bouquet::text
