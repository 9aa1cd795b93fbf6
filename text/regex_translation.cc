#include "text/regex_translation.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "text/unicode/regex_classes.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using unicode::CodePointRange;

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> Run() {
    while (at_ < in_.size()) {
      RETURN_IF_ERROR(Next());
    }
    return std::move(out_);
  }

 private:
  Status Next() {
    const char c = in_[at_];
    if (c == '\\') {
      return Escape();
    }
    if (c == '[') {
      return OpenSet();
    }
    if (c == '(' && depth_ == 0) {
      RETURN_IF_ERROR(CheckGroup());
    }
    if (c == ']' && depth_ > 0) {
      --depth_;
    }
    Copy(1);
    return {};
  }

  void Copy(size_t num_bytes) {
    out_.append(in_, at_, num_bytes);
    at_ += num_bytes;
  }
  bool Follows(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  Status Refuse(std::string_view what, size_t num_bytes) const {
    std::string_view passage = in_.substr(at_, num_bytes);
    if (at_ + passage.size() < in_.size()) {  // not through a character
      const size_t last = unicode::LastCodePointStart(passage);
      passage = in_.substr(at_, last + unicode::Decode(in_.substr(at_ + last)).num_bytes);
    }
    return Unimplemented(
        fmt::format("a regular expression with {} is not served: {}, in: {}", what, passage, in_));
  }

  /// A '[' and what stands at its beginning, where ']' is a character.
  Status OpenSet() {
    if (depth_ > 0 && Follows("[:")) {
      return Refuse("a POSIX bracket", 2);
    }
    ++depth_;
    Copy(Follows("[^") ? 2 : 1);
    if (Follows("]")) {
      Copy(1);
    }
    return {};
  }

  /// The kinds of groups that mean the same to every version.
  Status CheckGroup() const {
    if (Follows("(*")) {
      return Refuse("a callout", 2);
    }
    if (!Follows("(?")) {
      return {};
    }
    const std::string_view kind = in_.substr(at_ + 2);
    for (const std::string_view plain : {":", "=", "!", ">", "<"}) {
      if (kind.starts_with(plain)) {
        return {};
      }
    }
    const size_t end = kind.find_first_not_of("im-");  // flags
    const bool has_flags = end != 0 && end != std::string_view::npos;
    return has_flags && (kind[end] == ':' || kind[end] == ')') ? Status()
                                                               : Refuse("a group of this kind", 4);
  }

  Status Escape() {
    if (at_ + 1 == in_.size()) {
      return InvalidArgument(fmt::format("a regular expression ends in a backslash: {}", in_));
    }
    const char c = in_[at_ + 1];
    switch (c) {
      case 'p':
      case 'P': return NamedClass(c == 'P');
      case 'd': return PutClass(*unicode::FindRegexClass("Nd"), false, 2);
      case 'D': return PutClass(*unicode::FindRegexClass("Nd"), true, 2);
      case 's': return PutClass(unicode::RegexSpaceClass(), false, 2);
      case 'S': return PutClass(unicode::RegexSpaceClass(), true, 2);
      case 'w': return PutClass(unicode::RegexWordClass(depth_ > 0), false, 2);
      case 'W': return PutClass(unicode::RegexWordClass(depth_ > 0), true, 2);
      default: break;
    }
    constexpr std::string_view kSameInAllVersions = "nrtfvaexuAzZhHKk";
    if (IsAsciiLetter(c) && kSameInAllVersions.find(c) == std::string_view::npos) {
      return Refuse("this escape", 2);
    }
    Copy(2);
    return {};
  }

  /// \p{Name}, \p{^Name}, \P{Name}.
  Status NamedClass(bool negated) {
    const size_t end = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || end == std::string_view::npos) {
      return InvalidArgument(fmt::format("a regular expression has \\p without {{Name}}: {}", in_));
    }
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    if (name.starts_with('^')) {
      name.remove_prefix(1);
      negated = !negated;
    }
    const std::optional<std::vector<CodePointRange>> ranges = unicode::FindRegexClass(name);
    return ranges ? PutClass(*ranges, negated, end + 1 - at_) : Refuse("this class", end + 1 - at_);
  }

  /// A set of its own, which (?i) has no say in; within one, where it has, sets are united.
  Status PutClass(const std::vector<CodePointRange>& ranges, bool negated, size_t num_bytes) {
    if (depth_ > 0 && out_.ends_with('-') && !out_.ends_with("\\-") && !out_.ends_with("[-") &&
        !out_.ends_with("[^-")) {
      return Refuse("a class behind '-' in a set", num_bytes);
    }
    out_ += depth_ > 0 ? "" : "(?-i:";
    out_ += negated ? "[^" : "[";
    for (const auto& [first, last] : ranges) {
      // UTF-8 has no surrogates, and the engine takes none.
      const char32_t begin = first >= 0xD800 && first < 0xE000 ? 0xE000 : first;
      const char32_t end = last >= 0xD800 && last < 0xE000 ? 0xD7FF : last;
      if (begin <= end) {
        fmt::format_to(std::back_inserter(out_), "\\x{{{:x}}}-\\x{{{:x}}}",
                       static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
      }
    }
    out_ += depth_ > 0 ? "]" : "])";
    at_ += num_bytes;
    const bool begins_range = depth_ > 0 && Follows("-") && !Follows("-]");
    return begins_range ? Refuse("a class before '-' in a set", 2) : Status();
  }

  std::string_view in_;
  size_t at_ = 0;
  int depth_ = 0;  // of sets in sets
  std::string out_;
};

}  // namespace

Result<std::string> TranslateRegex(std::string_view expression) {
  return Translator(expression).Run();
}

}  // namespace bouquet::text
