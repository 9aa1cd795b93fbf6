#include "text/bert_normalizer.h"

#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using unicode::kEveryByte;
using unicode::kHighBits;
using unicode::PendingMark;

/// The high bit of each byte that is under `limit`; bytes must be ASCII, limit 1..0x80.
constexpr uint64_t BytesUnder(uint64_t word, uint64_t limit) {
  return ~(word + (0x80 - limit) * kEveryByte) & kHighBits;
}

constexpr uint64_t ToLowerAscii(uint64_t word) {
  const uint64_t upper = BytesUnder(word, 'Z' + 1) & ~BytesUnder(word, 'A');
  return word | (upper >> 2);  // 0x80 >> 2 is 0x20
}

/// Appends plain ASCII, eight bytes at a time, lower-cased if asked, until the end or a byte that
/// needs a look: not ASCII, or (when cleaning) a control character. Returns how many bytes.
size_t AppendPlainAscii(const NormalizerStage& stage, std::string_view text, std::string& out) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    const uint64_t word = unicode::LoadWord(text.data() + i);
    if ((word & kHighBits) != 0) {
      break;
    }
    if (stage.clean_text && (BytesUnder(word, 0x20) | (~BytesUnder(word, 0x7F) & kHighBits)) != 0) {
      break;
    }
    const uint64_t copied = stage.lowercase ? ToLowerAscii(word) : word;
    out.append(reinterpret_cast<const char*>(&copied), sizeof(copied));
  }
  return i;
}

/// Receives code points after cleaning and spacing; does the rest of the stage and writes UTF-8.
/// `source` is the byte of the input that a character stands for; where marks change places, the
/// sources do not: they are claimed in order, as source_map.h says.
template <class Sources>
class Writer {
 public:
  Writer(const NormalizerStage& stage, unicode::NormalizationScratch& scratch, Sources sources,
         std::string& out)
      : stage_(stage), marks_(scratch.marks), scratch_(scratch), sources_(sources), out_(out) {
    marks_.clear();
    scratch_.unclaimed.clear();
  }

  void Write(char32_t c, uint16_t properties, size_t source) {
    if (!stage_.strip_accents) {
      WriteLowered(c, properties, source);
      return;
    }
    if constexpr (Sources::kTracks) {
      scratch_.unclaimed.push_back(static_cast<uint32_t>(source));
    }
    bool is_added = false;
    const auto order_part = [&](char32_t part) {
      Order(part, unicode::Properties(part), is_added);
      is_added = true;
    };
    if ((properties & unicode::kDecomposes) != 0) {
      for (const char32_t part : unicode::CanonicalDecomposition(c)) {
        order_part(part);
      }
    } else if (unicode::IsHangulSyllable(c)) {
      unicode::DecomposeHangul(c, order_part);
    } else {
      Order(c, properties, false);
    }
  }

  /// Marks after a character are sorted by combining class. Nearly all of them are dropped, so
  /// hardly any ever waits here.
  void Settle() {
    if (marks_.empty()) {
      return;
    }
    unicode::SortMarks(marks_);
    for (const PendingMark& mark : marks_) {
      Finish(mark.value, unicode::Properties(mark.value), mark.is_added != 0);
    }
    marks_.clear();
  }

 private:
  /// Marks that are dropped need not wait with the others, unless claims are served by them.
  void Order(char32_t c, uint16_t properties, bool is_added) {
    const bool reorders = (properties & unicode::kReorders) != 0;
    const bool is_dropped = (properties & unicode::kNonspacingMark) != 0;
    if (reorders && (Sources::kTracks || !is_dropped)) {
      marks_.push_back({c, unicode::CombiningClass(c), is_added});
    } else if (!reorders) {
      Settle();
      Finish(c, properties, is_added);
    }
  }

  void Finish(char32_t c, uint16_t properties, bool is_added) {
    if constexpr (Sources::kTracks) {
      if (!is_added) {
        claimed_ = scratch_.unclaimed[num_claimed_++];
        if (num_claimed_ == scratch_.unclaimed.size()) {
          scratch_.unclaimed.clear();
          num_claimed_ = 0;
        }
      }
    }
    if ((properties & unicode::kNonspacingMark) == 0) {
      WriteLowered(c, properties, claimed_);
    }
  }

  void WriteLowered(char32_t c, uint16_t properties, size_t source) {
    const size_t size_before = out_.size();
    if (stage_.lowercase && (properties & unicode::kLowers) != 0) {
      unicode::Lowercase(c, [this](char32_t lower) { unicode::Append(lower, out_); });
    } else {
      unicode::Append(c, out_);
    }
    sources_.Same(source, out_.size() - size_before);
  }

  const NormalizerStage& stage_;
  std::vector<PendingMark>& marks_;
  unicode::NormalizationScratch& scratch_;
  Sources sources_;
  std::string& out_;
  size_t num_claimed_ = 0;  // of scratch_.unclaimed
  size_t claimed_ = 0;      // the source claimed last
};

}  // namespace

template <class Sources>
void NormalizeAsBert(const NormalizerStage& stage, std::string_view text,
                     unicode::NormalizationScratch& scratch, Sources sources, std::string& out) {
  out.clear();
  Writer<Sources> writer(stage, scratch, sources, out);
  for (size_t i = 0; i < text.size();) {
    if (scratch.marks.empty()) {
      const size_t num_plain = AppendPlainAscii(stage, text.substr(i), out);
      sources.Run(i, num_plain);
      i += num_plain;
      if (i == text.size()) {
        break;
      }
    }
    const auto [c, num_bytes] = unicode::Decode(text.substr(i));
    const size_t source = i;
    i += num_bytes;
    const uint16_t properties = unicode::Properties(c);
    if (stage.clean_text) {
      if ((properties & unicode::kControl) != 0) {
        continue;
      }
      if ((properties & unicode::kWhitespace) != 0) {
        writer.Write(U' ', unicode::Properties(U' '), source);
        continue;
      }
    }
    if (stage.handle_chinese_chars && unicode::IsChinese(c)) {
      writer.Write(U' ', unicode::Properties(U' '), source);
      writer.Write(c, properties, source);
      writer.Write(U' ', unicode::Properties(U' '), source);
    } else {
      writer.Write(c, properties, source);
    }
  }
  writer.Settle();
}

template void NormalizeAsBert(const NormalizerStage&, std::string_view,
                              unicode::NormalizationScratch&, NoSources, std::string&);
template void NormalizeAsBert(const NormalizerStage&, std::string_view,
                              unicode::NormalizationScratch&, SourceMap, std::string&);

}  // namespace bouquet::text
