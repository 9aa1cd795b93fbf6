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
class Writer {
 public:
  Writer(const NormalizerStage& stage, std::vector<PendingMark>& marks, std::string& out)
      : stage_(stage), marks_(marks), out_(out) {
    marks_.clear();
  }

  void Write(char32_t c, uint16_t properties) {
    if (!stage_.strip_accents) {
      WriteLowered(c, properties);
    } else if ((properties & unicode::kDecomposes) != 0) {
      for (const char32_t part : unicode::CanonicalDecomposition(c)) {
        Order(part, unicode::Properties(part));
      }
    } else if (unicode::IsHangulSyllable(c)) {
      unicode::DecomposeHangul(c,
                               [this](char32_t part) { Order(part, unicode::Properties(part)); });
    } else {
      Order(c, properties);
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
      WriteLowered(mark.value, unicode::Properties(mark.value));
    }
    marks_.clear();
  }

 private:
  void Order(char32_t c, uint16_t properties) {
    if ((properties & unicode::kNonspacingMark) != 0) {
      return;
    }
    if ((properties & unicode::kReorders) != 0) {
      marks_.push_back({c, unicode::CombiningClass(c)});
      return;
    }
    Settle();
    WriteLowered(c, properties);
  }

  void WriteLowered(char32_t c, uint16_t properties) {
    if (stage_.lowercase && (properties & unicode::kLowers) != 0) {
      unicode::Lowercase(c, [this](char32_t lower) { unicode::Append(lower, out_); });
    } else {
      unicode::Append(c, out_);
    }
  }

  const NormalizerStage& stage_;
  std::vector<PendingMark>& marks_;
  std::string& out_;
};

}  // namespace

void NormalizeAsBert(const NormalizerStage& stage, std::string_view text,
                     std::vector<PendingMark>& marks, std::string& out) {
  out.clear();
  Writer writer(stage, marks, out);
  for (size_t i = 0; i < text.size();) {
    if (marks.empty()) {
      i += AppendPlainAscii(stage, text.substr(i), out);
      if (i == text.size()) {
        break;
      }
    }
    const auto [c, num_bytes] = unicode::Decode(text.substr(i));
    i += num_bytes;
    const uint16_t properties = unicode::Properties(c);
    if (stage.clean_text) {
      if ((properties & unicode::kControl) != 0) {
        continue;
      }
      if ((properties & unicode::kWhitespace) != 0) {
        writer.Write(U' ', unicode::Properties(U' '));
        continue;
      }
    }
    if (stage.handle_chinese_chars && unicode::IsChinese(c)) {
      writer.Write(U' ', unicode::Properties(U' '));
      writer.Write(c, properties);
      writer.Write(U' ', unicode::Properties(U' '));
    } else {
      writer.Write(c, properties);
    }
  }
  writer.Settle();
}

}  // namespace bouquet::text
