#include "text/normalizer.h"

#include <algorithm>
#include <utility>

#include "text/bert_normalizer.h"
#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using Kind = NormalizerStage::Kind;
using unicode::NormalizationForm;

/// Writes what `map(c, emit)` emits for each code point.
template <class Map>
void MapCodePoints(std::string_view text, std::string& out, Map map) {
  out.clear();
  const auto emit = [&out](char32_t c) { unicode::Append(c, out); };
  for (size_t i = 0; i < text.size();) {
    const auto [c, num_bytes] = unicode::Decode(text.substr(i));
    i += num_bytes;
    map(c, emit);
  }
}

void Lowercase(std::string_view text, std::string& out) {
  MapCodePoints(text, out, [](char32_t c, auto emit) {
    if (unicode::Has(c, unicode::kLowers)) {
      unicode::Lowercase(c, emit);
    } else {
      emit(c);
    }
  });
}

void StripAccents(std::string_view text, std::string& out) {
  MapCodePoints(text, out, [](char32_t c, auto emit) {
    if (!unicode::Has(c, unicode::kMark)) {
      emit(c);
    }
  });
}

bool NmtDrops(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

/// The rules of SentencePiece's nmt preset, as the reference has them.
void Nmt(std::string_view text, std::string& out) {
  MapCodePoints(text, out, [](char32_t c, auto emit) {
    const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                          (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                          c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    if (!NmtDrops(c)) {
      emit(is_space ? U' ' : c);
    }
  });
}

void Replace(const NormalizerStage& stage, std::string_view text, std::string& out) {
  out.clear();
  size_t done = 0;
  for (size_t found = text.find(stage.pattern); found != std::string_view::npos;
       found = text.find(stage.pattern, done)) {
    out.append(text, done, found - done);
    out.append(stage.content);
    done = found + stage.pattern.size();
  }
  out.append(text.substr(done));
}

void ReplaceSpaces(const NormalizerStage& stage, std::string_view text, std::string& out) {
  out.clear();
  while (!text.empty()) {
    const size_t begin = std::min(text.find(' '), text.size());
    out.append(text, 0, begin);
    text.remove_prefix(begin);
    const size_t num_spaces = std::min(text.find_first_not_of(' '), text.size());
    if (num_spaces >= stage.min_spaces) {
      out.append(stage.content);
    } else {
      out.append(num_spaces, ' ');
    }
    text.remove_prefix(num_spaces);
  }
}

bool IsStripped(const NormalizerStage& stage, char32_t c) {
  return stage.spaces_only ? c == U' ' : unicode::Has(c, unicode::kWhitespace);
}

std::string_view Strip(const NormalizerStage& stage, std::string_view text) {
  while (stage.strip_left && !text.empty()) {
    const auto [c, num_bytes] = unicode::Decode(text);
    if (!IsStripped(stage, c)) {
      break;
    }
    text.remove_prefix(num_bytes);
  }
  while (stage.strip_right && !text.empty()) {
    const size_t last = unicode::LastCodePointStart(text);
    if (!IsStripped(stage, unicode::Decode(text.substr(last)).value)) {
      break;
    }
    text = text.substr(0, last);
  }
  return text;
}

void Prepend(const NormalizerStage& stage, std::string_view text, std::string& out) {
  out.clear();
  if (!text.empty()) {
    out.append(stage.content).append(text);
  }
}

void RunStage(const NormalizerStage& stage, std::string_view text,
              unicode::NormalizationScratch& scratch, std::string& out) {
  switch (stage.kind) {
    case Kind::kBert: NormalizeAsBert(stage, text, scratch.marks, out); break;
    case Kind::kLowercase: Lowercase(text, out); break;
    case Kind::kStripAccents: StripAccents(text, out); break;
    case Kind::kNfc: Normalize(text, NormalizationForm::kNfc, scratch, out); break;
    case Kind::kNfd: Normalize(text, NormalizationForm::kNfd, scratch, out); break;
    case Kind::kNfkc: Normalize(text, NormalizationForm::kNfkc, scratch, out); break;
    case Kind::kNfkd: Normalize(text, NormalizationForm::kNfkd, scratch, out); break;
    case Kind::kNmt: Nmt(text, out); break;
    case Kind::kReplace: Replace(stage, text, out); break;
    case Kind::kReplaceSpaces: ReplaceSpaces(stage, text, out); break;
    case Kind::kStrip: out.assign(Strip(stage, text)); break;
    case Kind::kPrepend: Prepend(stage, text, out); break;
    case Kind::kPrecompiled: stage.charsmap->Normalize(text, out); break;
  }
}

/// See Normalizer::Normalize.
bool KeepsBeginning(const NormalizerStage& stage, std::string_view text) {
  if (text.empty()) {
    return true;
  }
  const unicode::CodePoint first = unicode::Decode(text);
  switch (stage.kind) {
    case Kind::kBert:
      return !(stage.clean_text && unicode::Has(first.value, unicode::kControl)) &&
             !(stage.strip_accents && unicode::Has(first.value, unicode::kNonspacingMark));
    case Kind::kStripAccents: return !unicode::Has(first.value, unicode::kMark);
    case Kind::kNmt: return !NmtDrops(first.value);
    // What replaces several characters comes from the last of them.
    case Kind::kReplace:
      return !text.starts_with(stage.pattern) ||
             (!stage.content.empty() && stage.pattern.size() == first.num_bytes);
    case Kind::kReplaceSpaces: {
      const size_t num_spaces = std::min(text.find_first_not_of(' '), text.size());
      return num_spaces < stage.min_spaces || (num_spaces == 1 && !stage.content.empty());
    }
    case Kind::kStrip: return !stage.strip_left || !IsStripped(stage, first.value);
    default: return true;
  }
}

}  // namespace

std::string_view Normalizer::Normalize(std::string_view text, EncodeScratch& scratch,
                                       bool* keeps_beginning) const {
  // The buffers take turns by pointer: swapping their contents would let each grow on its own.
  std::string* out = &scratch.normalized;
  std::string* other = &scratch.spare;
  if (keeps_beginning != nullptr) {
    *keeps_beginning = true;
  }
  for (const NormalizerStage& stage : stages_) {
    if (keeps_beginning != nullptr) {
      *keeps_beginning &= KeepsBeginning(stage, text);
    }
    RunStage(stage, text, scratch.unicode, *out);
    text = *out;
    std::swap(out, other);
  }
  return text;
}

}  // namespace bouquet::text
