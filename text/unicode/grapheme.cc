#include "text/unicode/grapheme.h"

#include "text/unicode/utf8.h"

namespace bouquet::text::unicode {
namespace {

#include "text/unicode/grapheme_tables.inc"

using Class = GraphemeClass;

constexpr size_t kBlockBits = 7;

bool IsControl(Class c) {
  return c == Class::kControl || c == Class::kCarriageReturn || c == Class::kLineFeed;
}

bool IsExtend(Class c) {
  return c == Class::kExtend || c == Class::kInCbExtend || c == Class::kInCbLinker;
}

/// Rules 6 to 8: whether a syllable goes on.
bool ContinuesHangul(Class before, Class after) {
  switch (before) {
    case Class::kHangulL:
      return after == Class::kHangulL || after == Class::kHangulV || after == Class::kHangulLv ||
             after == Class::kHangulLvt;
    case Class::kHangulV:
    case Class::kHangulLv: return after == Class::kHangulV || after == Class::kHangulT;
    case Class::kHangulT:
    case Class::kHangulLvt: return after == Class::kHangulT;
    default: return false;
  }
}

/// Reads a cluster from its beginning. What the rules ask about the text before a place always lies
/// in the cluster at hand.
class ClusterReader {
 public:
  explicit ClusterReader(Class first) : before_(first) { Remember(first); }

  /// Takes the next character in unless the cluster ends before it.
  bool Continue(Class next) {
    if (!Joins(next)) {
      return false;
    }
    Remember(next);
    before_ = next;
    return true;
  }

 private:
  enum class Emoji : uint8_t { kNone, kPictographic, kJoined };
  enum class Conjunct : uint8_t { kNone, kConsonant, kLinked };

  bool Joins(Class next) const {
    if (before_ == Class::kCarriageReturn && next == Class::kLineFeed) {
      return true;  // rule 3
    }
    if (IsControl(before_) || IsControl(next)) {
      return false;  // rules 4 and 5
    }
    return IsExtend(next) || next == Class::kJoiner || next == Class::kSpacingMark ||  // 9, 9a
           before_ == Class::kPrepend ||                                               // 9b
           ContinuesHangul(before_, next) ||
           (next == Class::kConsonant && conjunct_ == Conjunct::kLinked) ||  // 9c
           (next == Class::kPictographic && emoji_ == Emoji::kJoined) ||     // 11
           (next == Class::kRegionalIndicator && before_ == Class::kRegionalIndicator &&
            num_regional_ % 2 == 1);  // 12, 13
  }

  void Remember(Class c) {
    num_regional_ = c == Class::kRegionalIndicator ? num_regional_ + 1 : 0;
    if (c == Class::kPictographic) {
      emoji_ = Emoji::kPictographic;
    } else if (c == Class::kJoiner && emoji_ == Emoji::kPictographic) {
      emoji_ = Emoji::kJoined;
    } else if (!IsExtend(c) || emoji_ == Emoji::kJoined) {
      emoji_ = Emoji::kNone;
    }
    if (c == Class::kConsonant) {
      conjunct_ = Conjunct::kConsonant;
    } else if (c == Class::kInCbLinker && conjunct_ != Conjunct::kNone) {
      conjunct_ = Conjunct::kLinked;
    } else if (c != Class::kInCbExtend && c != Class::kJoiner && c != Class::kInCbLinker) {
      conjunct_ = Conjunct::kNone;
    }
  }

  Class before_;
  Emoji emoji_ = Emoji::kNone;
  Conjunct conjunct_ = Conjunct::kNone;
  uint32_t num_regional_ = 0;
};

}  // namespace

GraphemeClass ClassOf(char32_t c) {
  return static_cast<Class>(
      kGraphemeClasses[(size_t{kGraphemeBlocks[c >> kBlockBits]} << kBlockBits) |
                       (c & ((1U << kBlockBits) - 1))]);
}

size_t FirstGraphemeCluster(std::string_view text) {
  const CodePoint first = Decode(text);
  ClusterReader cluster(ClassOf(first.value));
  size_t end = first.num_bytes;
  while (end < text.size()) {
    const CodePoint next = Decode(text.substr(end));
    if (!cluster.Continue(ClassOf(next.value))) {
      break;
    }
    end += next.num_bytes;
  }
  return end;
}

}  // namespace bouquet::text::unicode
