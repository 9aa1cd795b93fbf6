#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace bouquet::text::unicode {

// Classes of code points in regular expressions, by the Unicode version of the reference's engine
// (make_tables.py), which is newer than that of the engine here.

struct CodePointRange {
  char32_t first;
  char32_t last;  // within the range
};

/// What \p{name} matches, in order: a general category ("Lu"), all of a letter ("L") or a script
/// ("Han"); nullopt for another name. Case, spaces, '-' and '_' do not count.
std::optional<std::vector<CodePointRange>> FindRegexClass(std::string_view name);

/// What \w matches. Within a set ([\w]) the reference's engine leaves out ² ³ ¹ ¼ ½ ¾.
std::vector<CodePointRange> RegexWordClass(bool in_set);
/// What \s matches.
std::vector<CodePointRange> RegexSpaceClass();

}  // namespace bouquet::text::unicode
