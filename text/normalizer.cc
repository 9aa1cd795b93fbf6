#include "text/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/bert_normalizer.h"
#include "text/byte_level.h"
#include "text/source_map.h"
#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using Kind = NormalizerStage::Kind;
using unicode::NormalizationForm;

/// How long a text may become: rules that replace may make more of what others made. The most that
/// Unicode's own forms make of one byte is 11.
size_t MostBytes(std::string_view text) {
  constexpr size_t kGrowth = 64;
  constexpr size_t kShortText = 1024;
  return kGrowth * std::max(text.size(), kShortText);
}

/// Whether a stage's output is within the limit; if not, says so in the scratch.
bool IsWithin(size_t most_bytes, std::string_view out, EncodeScratch& scratch) {
  if (out.size() > most_bytes) {
    scratch.status = InvalidArgument(
        fmt::format("the tokenizer's normalizer makes too much of this text: more than {} bytes",
                    most_bytes),
        "text");
  }
  return out.size() <= most_bytes;
}

/// Writes what `map(c, emit)` emits for each code point.
template <class Sources, class Map>
void MapCodePoints(std::string_view text, Sources sources, std::string& out, Map map) {
  out.clear();
  size_t i = 0;
  const auto emit = [&](char32_t c) {
    const size_t size_before = out.size();
    unicode::Append(c, out);
    sources.Same(i, out.size() - size_before);
  };
  while (i < text.size()) {
    const auto [c, num_bytes] = unicode::Decode(text.substr(i));
    map(c, emit);
    i += num_bytes;
  }
}

template <class Sources>
void Lowercase(std::string_view text, Sources sources, std::string& out) {
  MapCodePoints(text, sources, out, [](char32_t c, auto emit) {
    if (unicode::Has(c, unicode::kLowers)) {
      unicode::Lowercase(c, emit);
    } else {
      emit(c);
    }
  });
}

template <class Sources>
void StripAccents(std::string_view text, Sources sources, std::string& out) {
  MapCodePoints(text, sources, out, [](char32_t c, auto emit) {
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
template <class Sources>
void Nmt(std::string_view text, Sources sources, std::string& out) {
  MapCodePoints(text, sources, out, [](char32_t c, auto emit) {
    const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                          (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                          c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    if (!NmtDrops(c)) {
      emit(is_space ? U' ' : c);
    }
  });
}

/// Ends early beyond `most_bytes`.
template <class Sources>
void Replace(const NormalizerStage& stage, std::string_view text, size_t most_bytes,
             Sources sources, std::string& out) {
  out.clear();
  size_t done = 0;
  for (size_t found = text.find(stage.pattern);
       found != std::string_view::npos && out.size() <= most_bytes;
       found = text.find(stage.pattern, done)) {
    out.append(text, done, found - done);
    sources.Run(done, found - done);
    done = found + stage.pattern.size();
    out.append(stage.content);
    sources.Same(done - 1, stage.content.size());
  }
  out.append(text.substr(done));
  sources.Run(done, text.size() - done);
}

/// An empty match stands, as in the reference, for what is before it; at the beginning, where the
/// reference lets it stand for nothing, for the first character. Drops matches beyond `most_bytes`.
template <class Sources>
Status ReplaceExpression(const NormalizerStage& stage, std::string_view text, size_t most_bytes,
                         Sources sources, std::string& out) {
  out.clear();
  return ForEachSegment(*stage.regex, text, [&](std::string_view segment, bool is_match) {
    const auto begin = static_cast<size_t>(segment.data() - text.data());
    if (is_match && out.size() > most_bytes) {
      return;
    }
    if (is_match) {
      out.append(stage.content);
      sources.Same(std::max<size_t>(begin + segment.size(), 1) - 1, stage.content.size());
    } else {
      out.append(segment);
      sources.Run(begin, segment.size());
    }
  });
}

template <class Sources>
void ByteLevel(std::string_view text, Sources sources, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t size_before = out.size();
    out.append(TokenOfByte(static_cast<uint8_t>(text[i])));
    sources.Same(i, out.size() - size_before);
  }
}

template <class Sources>
void ReplaceSpaces(const NormalizerStage& stage, std::string_view text, Sources sources,
                   std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size();) {
    const size_t begin = std::min(text.find(' ', i), text.size());
    const size_t end = std::min(text.find_first_not_of(' ', begin), text.size());
    if (end - begin >= stage.min_spaces) {
      out.append(text, i, begin - i).append(stage.content);
      sources.Run(i, begin - i);
      sources.Same(end - 1, stage.content.size());
    } else {
      out.append(text, i, end - i);
      sources.Run(i, end - i);
    }
    i = end;
  }
}

bool IsStripped(const NormalizerStage& stage, char32_t c) {
  return stage.spaces_only ? c == U' ' : unicode::Has(c, unicode::kWhitespace);
}

template <class Sources>
void Strip(const NormalizerStage& stage, std::string_view text, Sources sources, std::string& out) {
  const std::string_view unstripped = text;
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
  out.assign(text);
  sources.Run(static_cast<size_t>(text.data() - unstripped.data()), text.size());
}

template <class Sources>
void Prepend(const NormalizerStage& stage, std::string_view text, Sources sources,
             std::string& out) {
  out.clear();
  if (!text.empty()) {
    out.append(stage.content).append(text);
    sources.Same(0, stage.content.size());
    sources.Run(0, text.size());
  }
}

/// Beyond `most_bytes` the output may lack something.
template <class Sources>
void RunStage(const NormalizerStage& stage, std::string_view text, size_t most_bytes,
              EncodeScratch& scratch, Sources sources, std::string& out) {
  const auto normalize = [&](NormalizationForm form) {
    Normalize(text, form, scratch.unicode, sources, out);
  };
  switch (stage.kind) {
    case Kind::kBert: NormalizeAsBert(stage, text, scratch.unicode, sources, out); break;
    case Kind::kLowercase: Lowercase(text, sources, out); break;
    case Kind::kStripAccents: StripAccents(text, sources, out); break;
    case Kind::kNfc: normalize(NormalizationForm::kNfc); break;
    case Kind::kNfd: normalize(NormalizationForm::kNfd); break;
    case Kind::kNfkc: normalize(NormalizationForm::kNfkc); break;
    case Kind::kNfkd: normalize(NormalizationForm::kNfkd); break;
    case Kind::kNmt: Nmt(text, sources, out); break;
    case Kind::kReplace: Replace(stage, text, most_bytes, sources, out); break;
    case Kind::kReplaceExpression:
      if (Status status = ReplaceExpression(stage, text, most_bytes, sources, out); !status.ok()) {
        scratch.status = std::move(status);
      }
      break;
    case Kind::kReplaceSpaces: ReplaceSpaces(stage, text, sources, out); break;
    case Kind::kStrip: Strip(stage, text, sources, out); break;
    case Kind::kPrepend: Prepend(stage, text, sources, out); break;
    case Kind::kByteLevel: ByteLevel(text, sources, out); break;
    case Kind::kPrecompiled:
      stage.charsmap->Normalize(text, scratch.unicode.claims, sources, out);
      break;
  }
}

}  // namespace

std::string_view Normalizer::Normalize(std::string_view text, EncodeScratch& scratch) const {
  // The buffers take turns by pointer: swapping their contents would let each grow on its own.
  const size_t most_bytes = MostBytes(text);
  std::string* out = &scratch.normalized;
  std::string* other = &scratch.spare;
  for (const NormalizerStage& stage : stages_) {
    RunStage(stage, text, most_bytes, scratch, NoSources(), *out);
    if (!IsWithin(most_bytes, *out, scratch)) {
      return {};
    }
    text = *out;
    std::swap(out, other);
  }
  return text;
}

std::string_view Normalizer::NormalizeWithOrigins(std::string_view text, size_t begin,
                                                  EncodeScratch& scratch) const {
  scratch.origins.clear();
  for (size_t i = 0; i < text.size();) {
    const uint32_t num_bytes = unicode::Decode(text.substr(i)).num_bytes;
    const auto character = static_cast<uint32_t>(begin + i);
    scratch.origins.insert(scratch.origins.end(), num_bytes, {character, character + num_bytes});
    i += num_bytes;
  }
  const size_t most_bytes = MostBytes(text);
  std::string* out = &scratch.normalized;
  std::string* other = &scratch.spare;
  for (const NormalizerStage& stage : stages_) {
    RunStage(stage, text, most_bytes, scratch, SourceMap(scratch.sources), *out);
    if (!IsWithin(most_bytes, *out, scratch)) {
      return {};
    }
    CHECK_EQ(scratch.sources.size(), out->size());
    scratch.spare_origins.clear();
    for (const uint32_t source : scratch.sources) {
      scratch.spare_origins.push_back(scratch.origins[source]);
    }
    std::swap(scratch.origins, scratch.spare_origins);
    text = *out;
    std::swap(out, other);
  }
  return text;
}

}  // namespace bouquet::text
