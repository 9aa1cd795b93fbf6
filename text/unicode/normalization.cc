#include "text/unicode/normalization.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>

#include "text/unicode/utf8.h"

namespace bouquet::text::unicode {
namespace {

#include "text/unicode/normalization_tables.inc"

constexpr size_t kBlockBits = 6;

std::u32string_view Sequence(size_t offset) {
  return {kDecompositions + offset + 1, kDecompositions[offset]};
}

void Settle(std::vector<PendingMark>& marks, std::u32string& out) {
  SortMarks(marks);
  for (const PendingMark& mark : marks) {
    out.push_back(mark.value);
  }
  marks.clear();
}

void Decompose(std::string_view text, bool compatibly, NormalizationScratch& scratch) {
  scratch.decomposed.clear();
  scratch.marks.clear();
  const auto emit = [&](char32_t c) {
    if (Has(c, kReorders)) {
      scratch.marks.push_back({c, CombiningClass(c)});
    } else {
      if (!scratch.marks.empty()) {
        Settle(scratch.marks, scratch.decomposed);
      }
      scratch.decomposed.push_back(c);
    }
  };
  for (size_t i = 0; i < text.size();) {
    const auto [c, num_bytes] = Decode(text.substr(i));
    i += num_bytes;
    const uint16_t properties = Properties(c);
    if (compatibly && (properties & kDecomposesCompatibly) != 0) {
      std::ranges::for_each(CompatibilityDecomposition(c), emit);
    } else if (!compatibly && (properties & kDecomposes) != 0) {
      std::ranges::for_each(CanonicalDecomposition(c), emit);
    } else if (IsHangulSyllable(c)) {
      DecomposeHangul(c, emit);
    } else {
      emit(c);
    }
  }
  Settle(scratch.marks, scratch.decomposed);
}

/// The primary composite of a pair, or 0.
char32_t Compose(char32_t first, char32_t second) {
  if (first - kLeadFirst < kLeadCount && second - kVowelFirst < kVowelCount) {
    return kHangulFirst +
           ((first - kLeadFirst) * kVowelCount + (second - kVowelFirst)) * kTrailCount;
  }
  if (IsHangulSyllable(first) && (first - kHangulFirst) % kTrailCount == 0 &&
      second - kTrailFirst - 1 < kTrailCount - 1) {
    return first + (second - kTrailFirst);
  }
  size_t low = 0;
  size_t high = std::size(kCompositions) / 3;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const uint32_t* entry = kCompositions + 3 * middle;
    if (entry[0] == first && entry[1] == second) {
      return entry[2];
    }
    if (entry[0] < first || (entry[0] == first && entry[1] < second)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return 0;
}

/// Composes in place (UAX 15, D117): a character joins the last starter unless one of the same or a
/// higher class, or another starter, stands between.
void ComposeAll(std::u32string& text) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t starter = kNone;  // index in what is written
  size_t size = 0;         // written so far
  int last_class = -1;     // of the character written last; -1 right after the starter
  for (const char32_t c : text) {
    const int own_class = CombiningClass(c);
    if (starter != kNone && last_class < own_class) {
      if (const char32_t composed = Compose(text[starter], c); composed != 0) {
        text[starter] = composed;
        continue;
      }
    }
    if (own_class == 0) {
      starter = size;
      last_class = -1;
    } else {
      last_class = own_class;
    }
    text[size++] = c;
  }
  text.resize(size);
}

}  // namespace

void SortMarks(std::vector<PendingMark>& marks) {
  if (marks.size() < 2) {
    return;
  }
  for (size_t i = 0; i < marks.size(); ++i) {
    marks[i].position = static_cast<uint32_t>(i);
  }
  std::ranges::sort(marks, [](const PendingMark& a, const PendingMark& b) {
    return std::tie(a.combining_class, a.position) < std::tie(b.combining_class, b.position);
  });
}

std::u32string_view CanonicalDecomposition(char32_t c) {
  const size_t block = std::min<size_t>(c >> kBlockBits, std::size(kCanonicalBlocks) - 1);
  return Sequence(kCanonicalOffsets[(size_t{kCanonicalBlocks[block]} << kBlockBits) |
                                    (c & ((1U << kBlockBits) - 1))]);
}

std::u32string_view CompatibilityDecomposition(char32_t c) {
  size_t low = 0;
  size_t high = std::size(kCompatibleOffsets) / 2;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (kCompatibleOffsets[2 * middle] < c) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const bool found = 2 * low < std::size(kCompatibleOffsets) && kCompatibleOffsets[2 * low] == c;
  return found ? Sequence(kCompatibleOffsets[2 * low + 1]) : CanonicalDecomposition(c);
}

void Normalize(std::string_view text, NormalizationForm form, NormalizationScratch& scratch,
               std::string& out) {
  if (AsciiPrefix(text) == text.size()) {
    out.assign(text);
    return;
  }
  Decompose(text, form == NormalizationForm::kNfkc || form == NormalizationForm::kNfkd, scratch);
  if (form == NormalizationForm::kNfc || form == NormalizationForm::kNfkc) {
    ComposeAll(scratch.decomposed);
  }
  out.clear();
  for (const char32_t c : scratch.decomposed) {
    Append(c, out);
  }
}

}  // namespace bouquet::text::unicode
