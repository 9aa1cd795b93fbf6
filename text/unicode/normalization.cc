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

/// Claims (source_map.h) are kept by output character, only where sources are asked for.
template <bool kClaims>
void Put(char32_t c, bool is_added, NormalizationScratch& scratch) {
  scratch.decomposed.push_back(c);
  if constexpr (kClaims) {
    scratch.claims.push_back(is_added ? 0 : 1);
  }
}

template <bool kClaims>
void Settle(NormalizationScratch& scratch) {
  SortMarks(scratch.marks);
  for (const PendingMark& mark : scratch.marks) {
    Put<kClaims>(mark.value, mark.is_added != 0, scratch);
  }
  scratch.marks.clear();
}

template <bool kClaims>
void Decompose(std::string_view text, bool compatibly, NormalizationScratch& scratch) {
  scratch.decomposed.clear();
  scratch.claims.clear();
  scratch.marks.clear();
  bool is_added = false;
  const auto emit = [&](char32_t c) {
    if (Has(c, kReorders)) {
      scratch.marks.push_back({c, CombiningClass(c), is_added});
    } else {
      if (!scratch.marks.empty()) {
        Settle<kClaims>(scratch);
      }
      Put<kClaims>(c, is_added, scratch);
    }
    is_added = true;
  };
  for (size_t i = 0; i < text.size();) {
    const auto [c, num_bytes] = Decode(text.substr(i));
    i += num_bytes;
    const uint16_t properties = Properties(c);
    is_added = false;
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
  Settle<kClaims>(scratch);
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
template <bool kClaims>
void ComposeAll(NormalizationScratch& scratch) {
  std::u32string& text = scratch.decomposed;
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t starter = kNone;  // index in what is written
  size_t size = 0;         // written so far
  int last_class = -1;     // of the character written last; -1 right after the starter
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    const int own_class = CombiningClass(c);
    if (starter != kNone && last_class < own_class) {
      if (const char32_t composed = Compose(text[starter], c); composed != 0) {
        text[starter] = composed;
        if constexpr (kClaims) {
          scratch.claims[starter] += scratch.claims[i];
        }
        continue;
      }
    }
    if (own_class == 0) {
      starter = size;
      last_class = -1;
    } else {
      last_class = own_class;
    }
    if constexpr (kClaims) {
      scratch.claims[size] = scratch.claims[i];
    }
    text[size++] = c;
  }
  text.resize(size);
  if constexpr (kClaims) {
    scratch.claims.resize(size);
  }
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

template <class Sources>
void Normalize(std::string_view text, NormalizationForm form, NormalizationScratch& scratch,
               Sources sources, std::string& out) {
  if (AsciiPrefix(text) == text.size()) {
    out.assign(text);
    sources.Run(0, text.size());
    return;
  }
  Decompose<Sources::kTracks>(
      text, form == NormalizationForm::kNfkc || form == NormalizationForm::kNfkd, scratch);
  if (form == NormalizationForm::kNfc || form == NormalizationForm::kNfkc) {
    ComposeAll<Sources::kTracks>(scratch);
  }
  out.clear();
  for (const char32_t c : scratch.decomposed) {
    Append(c, out);
  }
  if constexpr (Sources::kTracks) {
    ServeClaims(text, scratch.claims, out, sources);
  }
}

template void Normalize(std::string_view, NormalizationForm, NormalizationScratch&, NoSources,
                        std::string&);
template void Normalize(std::string_view, NormalizationForm, NormalizationScratch&, SourceMap,
                        std::string&);

}  // namespace bouquet::text::unicode
