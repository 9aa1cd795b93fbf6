#include "ivy/api/json_fault.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace bouquet::ivy::api {
namespace {

using Kind = JsonFault::Kind;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Length of the valid UTF-8 sequence at the front of `text`, or 0 (RFC 3629: no surrogates, no
/// overlong forms, nothing above U+10FFFF).
size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(i < text.size() ? text[i] : 0); };
  const auto continues = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

/// Whether the magnitude of a number that is far from one is above it. `number` is valid JSON.
bool IsAboveOne(std::string_view number) {
  if (number.front() == '-') {
    number.remove_prefix(1);
  }
  const size_t mark = std::min(number.find_first_of("eE"), number.size());
  std::string_view exponent = number.substr(std::min(mark + 1, number.size()));
  const std::string_view mantissa = number.substr(0, mark);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first_digit = mantissa.find_first_not_of("0.");
  if (first_digit == std::string_view::npos) {
    return false;  // it is zero
  }
  // The power of ten of the first digit that counts.
  const int64_t power = static_cast<int64_t>(point) - static_cast<int64_t>(first_digit);
  if (exponent.starts_with('+')) {
    exponent.remove_prefix(1);
  }
  int64_t shift = 0;
  const std::errc error =
      std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift).ec;
  if (error == std::errc::result_out_of_range) {
    return exponent.front() != '-';
  }
  return power + shift > 0;
}

/// Recursive descent over RFC 8259's grammar; recursion is bounded by max_depth.
class Scanner {
 public:
  Scanner(std::string_view text, size_t max_depth) : text_(text), max_depth_(max_depth) {}

  std::optional<JsonFault> Run() {
    SkipSpace();
    if (at_ == text_.size()) {
      Fail(Kind::kSyntax, at_, "there is no value");
    } else if (Value(0)) {
      SkipSpace();
      if (at_ < text_.size()) {
        Fail(Kind::kSyntax, at_, "something follows the value");
      }
    }
    return std::move(fault_);
  }

 private:
  bool Fail(Kind kind, size_t offset, std::string_view what) {
    fault_ = JsonFault{kind, offset, path_, what};
    return false;
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool AtEnd() const { return at_ == text_.size(); }

  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  bool Value(size_t depth) {
    if (AtEnd()) {
      return Fail(Kind::kSyntax, at_, "the text ends where a value should be");
    }
    switch (Peek()) {
      case '{': return Object(depth + 1);
      case '[': return Array(depth + 1);
      case '"': return String(nullptr);
      case 't': return Word("true");
      case 'f': return Word("false");
      case 'n': return Word("null");
      default: return Number();
    }
  }

  bool Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) {
      return Fail(Kind::kSyntax, at_, "expected a value");
    }
    at_ += word.size();
    return true;
  }

  bool Object(size_t depth) {
    if (depth > max_depth_) {
      return Fail(Kind::kTooDeep, at_, "too many arrays and objects inside one another");
    }
    ++at_;
    SkipSpace();
    if (Peek() == '}') {
      ++at_;
      return true;
    }
    for (;;) {
      SkipSpace();
      if (Peek() != '"') {
        return Fail(Kind::kSyntax, at_, "expected a key in quotes");
      }
      std::string key;
      if (!String(&key)) {
        return false;
      }
      SkipSpace();
      if (Peek() != ':') {
        return Fail(Kind::kSyntax, at_, "expected ':' after a key");
      }
      ++at_;
      SkipSpace();
      const size_t outer = path_.size();
      path_ += (outer == 0 ? "" : ".") + key;
      if (!Value(depth)) {
        return false;
      }
      path_.resize(outer);
      SkipSpace();
      if (Peek() == '}') {
        ++at_;
        return true;
      }
      if (Peek() != ',') {
        return Fail(Kind::kSyntax, at_, "expected ',' or '}' in an object");
      }
      ++at_;
    }
  }

  bool Array(size_t depth) {
    if (depth > max_depth_) {
      return Fail(Kind::kTooDeep, at_, "too many arrays and objects inside one another");
    }
    ++at_;
    SkipSpace();
    if (Peek() == ']') {
      ++at_;
      return true;
    }
    const size_t outer = path_.size();
    for (size_t i = 0;; ++i) {
      SkipSpace();
      path_ += '[' + std::to_string(i) + ']';
      if (!Value(depth)) {
        return false;
      }
      path_.resize(outer);
      SkipSpace();
      if (Peek() == ']') {
        ++at_;
        return true;
      }
      if (Peek() != ',') {
        return Fail(Kind::kSyntax, at_, "expected ',' or ']' in an array");
      }
      ++at_;
    }
  }

  /// `key`, when wanted, gets the raw characters: enough to name a path.
  bool String(std::string* key) {
    const size_t begin = ++at_;
    for (;;) {
      if (AtEnd()) {
        return Fail(Kind::kSyntax, at_, "the text ends inside a string");
      }
      const char c = text_[at_];
      if (c == '"') {
        if (key != nullptr) {
          key->assign(text_.substr(begin, at_ - begin));
        }
        ++at_;
        return true;
      }
      if (static_cast<uint8_t>(c) < 0x20) {
        return Fail(Kind::kSyntax, at_, "a control character in a string must be escaped");
      }
      if (c == '\\') {
        if (!Escape()) {
          return false;
        }
        continue;
      }
      const size_t length = Utf8SequenceLength(text_.substr(at_, 4));
      if (length == 0) {
        return Fail(Kind::kUtf8, at_, "invalid UTF-8");
      }
      at_ += length;
    }
  }

  bool Escape() {
    const size_t begin = at_;
    const char c = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
    if (c != 'u') {
      if (c == '\0' || std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
        return Fail(Kind::kSyntax, begin, "unknown escape in a string");
      }
      at_ += 2;
      return true;
    }
    const std::optional<uint32_t> unit = HexUnit(begin);
    if (!unit) {
      return Fail(Kind::kSyntax, begin, "\\u needs four hexadecimal digits");
    }
    at_ += 6;
    if (*unit < 0xD800 || *unit > 0xDFFF) {
      return true;
    }
    const std::optional<uint32_t> second = HexUnit(at_);
    if (*unit > 0xDBFF || !second || *second < 0xDC00 || *second > 0xDFFF) {
      return Fail(Kind::kLoneSurrogate, begin, "a lone surrogate is no character");
    }
    at_ += 6;
    return true;
  }

  /// The code unit of "\uXXXX" at `offset`, if that is there.
  std::optional<uint32_t> HexUnit(size_t offset) const {
    if (text_.substr(offset, 2) != "\\u" || offset + 6 > text_.size()) {
      return std::nullopt;
    }
    uint32_t unit = 0;
    const char* begin = text_.data() + offset + 2;
    const auto [end, error] = std::from_chars(begin, begin + 4, unit, 16);
    return error == std::errc() && end == begin + 4 ? std::optional(unit) : std::nullopt;
  }

  bool Number() {
    const size_t begin = at_;
    if (Peek() == '-') {
      ++at_;
    }
    if (!IsDigit(Peek())) {
      return Fail(Kind::kSyntax, begin, "expected a value");
    }
    if (Peek() == '0' && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1])) {
      return Fail(Kind::kSyntax, begin, "a number may not begin with 0");
    }
    SkipDigits();
    bool integer = true;
    if (Peek() == '.') {
      integer = false;
      ++at_;
      if (!SkipDigits()) {
        return Fail(Kind::kSyntax, begin, "a number needs digits after its point");
      }
    }
    if (Peek() == 'e' || Peek() == 'E') {
      integer = false;
      ++at_;
      if (Peek() == '+' || Peek() == '-') {
        ++at_;
      }
      if (!SkipDigits()) {
        return Fail(Kind::kSyntax, begin, "a number needs digits after its exponent sign");
      }
    }
    return CheckRange(text_.substr(begin, at_ - begin), integer, begin);
  }

  bool CheckRange(std::string_view number, bool integer, size_t begin) {
    const char* first = number.data();
    const char* last = first + number.size();
    std::errc error{};
    if (integer && number.front() == '-') {
      int64_t value = 0;
      error = std::from_chars(first, last, value).ec;
    } else if (integer) {
      uint64_t value = 0;
      error = std::from_chars(first, last, value).ec;
    } else {
      // Too small to tell from zero is fine, too large is not; from_chars says "out of range" to
      // both.
      double value = 0;
      error = std::from_chars(first, last, value).ec;
      if (error == std::errc::result_out_of_range && !IsAboveOne(number)) {
        return true;
      }
    }
    return error == std::errc() || Fail(Kind::kNumberRange, begin, "number is out of range");
  }

  bool SkipDigits() {
    const size_t begin = at_;
    while (IsDigit(Peek())) {
      ++at_;
    }
    return at_ > begin;
  }

  std::string_view text_;
  size_t max_depth_;
  size_t at_ = 0;
  std::string path_;
  std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> FindJsonFault(std::string_view text, size_t max_depth) {
  return Scanner(text, max_depth).Run();
}

}  // namespace bouquet::ivy::api
