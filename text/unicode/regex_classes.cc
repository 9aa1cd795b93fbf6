#include "text/unicode/regex_classes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "text/unicode/properties.h"

namespace bouquet::text::unicode {
namespace {

struct Script {
  std::string_view name;
  std::span<const char32_t> ranges;  // first, last, first, last, …
};

#include "text/unicode/regex_tables.inc"

/// A script's name as it is looked up: "Old_Italic" → "olditalic".
std::string Folded(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_') {
      folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return folded;
}

std::vector<CodePointRange> Ranges(std::span<const char32_t> flat) {
  std::vector<CodePointRange> ranges;
  for (size_t i = 0; i + 1 < flat.size(); i += 2) {
    ranges.push_back({flat[i], flat[i + 1]});
  }
  return ranges;
}

/// Of the categories whose names begin with `name`.
std::vector<CodePointRange> CategoryRanges(std::string_view name) {
  std::vector<CodePointRange> ranges;
  constexpr size_t kNumRuns = std::size(kCategoryRuns);
  for (size_t i = 0; i < kNumRuns; ++i) {
    if (!Folded(kCategoryNames[kCategoryRuns[i] & 0xFF]).starts_with(name)) {
      continue;
    }
    const char32_t first = kCategoryRuns[i] >> 8;
    const char32_t end = i + 1 < kNumRuns ? kCategoryRuns[i + 1] >> 8 : 0x110000;
    if (!ranges.empty() && ranges.back().last + 1 == first) {
      ranges.back().last = end - 1;
    } else {
      ranges.push_back({first, end - 1});
    }
  }
  return ranges;
}

}  // namespace

std::optional<std::vector<CodePointRange>> FindRegexClass(std::string_view name) {
  const std::string folded = Folded(name);
  if (folded.size() == 1 || folded.size() == 2) {
    std::vector<CodePointRange> ranges = CategoryRanges(folded);
    return ranges.empty() ? std::nullopt : std::optional(std::move(ranges));
  }
  const auto* const script =
      std::ranges::find(kScripts, folded, [](const Script& s) { return Folded(s.name); });
  return script == std::end(kScripts) ? std::nullopt : std::optional(Ranges(script->ranges));
}

std::vector<CodePointRange> RegexWordClass(bool in_set) {
  constexpr std::u32string_view kNotInSets = U"\u00B2\u00B3\u00B9\u00BC\u00BD\u00BE";
  std::vector<CodePointRange> ranges;
  for (const auto& [first, last] : Ranges(kWordRanges)) {
    char32_t begin = first;
    for (const char32_t c : kNotInSets) {
      if (in_set && begin <= c && c <= last) {
        if (begin < c) {
          ranges.push_back({begin, c - 1});
        }
        begin = c + 1;
      }
    }
    if (begin <= last) {
      ranges.push_back({begin, last});
    }
  }
  return ranges;
}

std::vector<CodePointRange> RegexSpaceClass() {
  std::vector<CodePointRange> ranges;
  constexpr char32_t kEndOfSpaces = 0x3001;  // U+3000 is the last
  for (char32_t c = 0; c < kEndOfSpaces; ++c) {
    if (Has(c, kRegexSpace)) {
      ranges.push_back({c, c});
    }
  }
  return ranges;
}

}  // namespace bouquet::text::unicode
