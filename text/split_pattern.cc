#include "text/split_pattern.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };

Class ClassOf(char32_t c) {
  const uint16_t properties = unicode::Properties(c);
  return (properties & unicode::kRegexLetter) != 0   ? Class::kLetter
         : (properties & unicode::kRegexNumber) != 0 ? Class::kNumber
         : (properties & unicode::kRegexSpace) != 0  ? Class::kSpace
                                                     : Class::kOther;
}

// ASCII by table: most text is.
constexpr std::array<Class, 128> MakeAsciiClasses() {
  std::array<Class, 128> classes{};
  for (unsigned c = 0; c < 128; ++c) {
    const bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    classes[c] = is_letter                            ? Class::kLetter
                 : c >= '0' && c <= '9'               ? Class::kNumber
                 : c == ' ' || (c >= 0x09 && c <= 13) ? Class::kSpace
                                                      : Class::kOther;
  }
  return classes;
}
constexpr std::array<Class, 128> kAsciiClasses = MakeAsciiClasses();

struct Character {
  Class of_class;
  uint32_t num_bytes;
};

Character At(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    return {kAsciiClasses[first], 1};
  }
  const unicode::CodePoint decoded = unicode::Decode(text);
  return {ClassOf(decoded.value), decoded.num_bytes};
}

/// How many bytes of `text` from `begin` on are characters of one class.
size_t EndOfRun(std::string_view text, size_t begin, Class of_class) {
  while (begin < text.size()) {
    const Character c = At(text.substr(begin));
    if (c.of_class != of_class) {
      break;
    }
    begin += c.num_bytes;
  }
  return begin;
}

bool IsLineBreak(char c) { return c == '\n' || c == '\r'; }

/// 's|'t|'re|'ve|'m|'ll|'d, or 0. In any case: U+017F folds to "s" too.
size_t Contraction(std::string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') {
    return 0;
  }
  const auto lower = [&](size_t i) {
    const char c = i < text.size() ? text[i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = lower(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return 2;
  }
  if (any_case && text.substr(1).starts_with("\u017F")) {
    return 3;
  }
  const char second = lower(2);
  const bool is_long =
      ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return is_long ? 3 : 0;
}

/// \s+(?!\S)|\s+ where text[0] is a space: a run leaves its last character to what follows it,
/// unless it has only one.
size_t Spaces(std::string_view text) {
  const size_t end = EndOfRun(text, 0, Class::kSpace);
  if (end == text.size()) {
    return end;
  }
  const size_t last = unicode::LastCodePointStart(text.substr(0, end));
  return last == 0 ? end : last;
}

size_t MatchGpt2(std::string_view text) {
  if (const size_t length = Contraction(text, false); length > 0) {
    return length;
  }
  const Character first = At(text);
  // " ?" before a run of anything but spaces.
  if (text[0] == ' ' && text.size() > 1) {
    const Character second = At(text.substr(1));
    if (second.of_class != Class::kSpace) {
      return EndOfRun(text, 1 + second.num_bytes, second.of_class);
    }
  }
  return first.of_class == Class::kSpace ? Spaces(text)
                                         : EndOfRun(text, first.num_bytes, first.of_class);
}

/// \s*[\r\n]+ of a run of spaces: up to its last line break; 0 without one.
size_t SpacesToLineBreak(std::string_view text) {
  size_t end = EndOfRun(text, 0, Class::kSpace);
  while (end > 0 && !IsLineBreak(text[end - 1])) {
    --end;
  }
  return end;
}

/// `most_digits`: of a number.
size_t MatchQwen2(std::string_view text, int most_digits) {
  if (const size_t length = Contraction(text, true); length > 0) {
    return length;
  }
  const Character first = At(text);
  if (first.of_class == Class::kLetter) {
    return EndOfRun(text, first.num_bytes, Class::kLetter);
  }
  if (first.of_class == Class::kNumber) {
    size_t end = first.num_bytes;
    for (int digits = 1; digits < most_digits && end < text.size(); ++digits) {
      const Character next = At(text.substr(end));
      if (next.of_class != Class::kNumber) {
        break;
      }
      end += next.num_bytes;
    }
    return end;
  }
  // One character that is neither letter, number nor line break goes with the letters behind it.
  const bool is_line_break = IsLineBreak(text[0]);
  const std::string_view rest = text.substr(first.num_bytes);
  if (!rest.empty()) {
    const Character second = At(rest);
    if (!is_line_break && second.of_class == Class::kLetter) {
      return EndOfRun(text, first.num_bytes + second.num_bytes, Class::kLetter);
    }
    if (text[0] == ' ' && second.of_class == Class::kOther) {
      size_t end = EndOfRun(text, 1 + second.num_bytes, Class::kOther);
      while (end < text.size() && IsLineBreak(text[end])) {
        ++end;
      }
      return end;
    }
  }
  if (first.of_class == Class::kOther) {
    size_t end = EndOfRun(text, first.num_bytes, Class::kOther);
    while (end < text.size() && IsLineBreak(text[end])) {
      ++end;
    }
    return end;
  }
  const size_t to_line_break = SpacesToLineBreak(text);
  return to_line_break > 0 ? to_line_break : Spaces(text);
}

}  // namespace

std::optional<SplitPattern> FindSplitPattern(std::string_view regex) {
  constexpr std::pair<std::string_view, SplitPattern> kKnown[] = {
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
       SplitPattern::kGpt2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       SplitPattern::kQwen2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       SplitPattern::kLlama3},
  };
  const auto* const found =
      std::ranges::find(kKnown, regex, &std::pair<std::string_view, SplitPattern>::first);
  return found == std::end(kKnown) ? std::nullopt : std::optional(found->second);
}

void SplitByPattern(SplitPattern pattern, std::string_view text,
                    std::vector<std::string_view>& pieces) {
  while (!text.empty()) {
    const size_t length = pattern == SplitPattern::kGpt2
                              ? MatchGpt2(text)
                              : MatchQwen2(text, pattern == SplitPattern::kQwen2 ? 1 : 3);
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace bouquet::text
