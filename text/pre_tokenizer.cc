#include "text/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using Kind = PreTokenizerStage::Kind;
using Pieces = std::vector<std::string_view>;

/// Cuts one text at matches according to a behaviour. Fed with segments, which are consecutive and
/// cover the text.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, Pieces& out) : behavior_(behavior), out_(out) {}

  void Add(std::string_view segment, bool is_match) {
    const bool was_match = previous_match_;
    previous_match_ = is_match;
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!is_match) {
          out_.push_back(segment);
        }
        return;
      case SplitBehavior::kIsolated: out_.push_back(segment); return;
      case SplitBehavior::kContiguous: Put(segment, is_match == was_match); return;
      case SplitBehavior::kMergedWithPrevious: Put(segment, is_match && !was_match); return;
      case SplitBehavior::kMergedWithNext:
        // A match joins what follows it, unless that is a match too.
        Put(segment, was_match && !is_match);
        return;
    }
  }

 private:
  void Put(std::string_view segment, bool join) {
    if (join && started_) {
      out_.back() = {out_.back().data(), out_.back().size() + segment.size()};
    } else {
      out_.push_back(segment);
    }
    started_ = true;
  }

  SplitBehavior behavior_;
  Pieces& out_;
  bool previous_match_ = false;
  bool started_ = false;
};

/// Segments at every code point with one of the properties.
void SplitByProperty(std::string_view text, uint16_t properties, SplitBehavior behavior,
                     Pieces& out) {
  Splitter splitter(behavior, out);
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const auto [c, num_bytes] = unicode::Decode(text.substr(i));
    if (unicode::Has(c, properties)) {
      if (done < i) {
        splitter.Add(text.substr(done, i - done), false);
      }
      splitter.Add(text.substr(i, num_bytes), true);
      done = i + num_bytes;
    }
    i += num_bytes;
  }
  if (done < text.size()) {
    splitter.Add(text.substr(done), false);
  }
}

void SplitByLiteral(const PreTokenizerStage& stage, std::string_view text, Pieces& out) {
  Splitter splitter(stage.behavior, out);
  size_t done = 0;
  for (size_t found = text.find(stage.pattern); found != std::string_view::npos;
       found = text.find(stage.pattern, done)) {
    if (done < found) {
      splitter.Add(text.substr(done, found - done), stage.invert);
    }
    splitter.Add(text.substr(found, stage.pattern.size()), !stage.invert);
    done = found + stage.pattern.size();
  }
  if (done < text.size()) {
    splitter.Add(text.substr(done), stage.invert);
  }
}

/// The expression may match nothing at all between two characters; such segments join others, but
/// are no pieces of their own.
void SplitByRegex(const PreTokenizerStage& stage, std::string_view text, Status& status,
                  Pieces& out) {
  const auto num_before = static_cast<ptrdiff_t>(out.size());
  Splitter splitter(stage.behavior, out);
  Status searched =
      ForEachSegment(*stage.regex, text, [&](std::string_view segment, bool is_match) {
        splitter.Add(segment, is_match != stage.invert);
      });
  if (!searched.ok()) {
    status = std::move(searched);
  }
  out.erase(std::remove(out.begin() + num_before, out.end(), std::string_view()), out.end());
}

void SplitByLength(size_t length, std::string_view text, Pieces& out) {
  while (!text.empty()) {
    size_t end = 0;
    for (size_t i = 0; i < length && end < text.size(); ++i) {
      end += unicode::Decode(text.substr(end)).num_bytes;
    }
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

/// Runs of word characters, runs of others, whitespace left out.
void SplitWords(std::string_view text, Pieces& out) {
  enum class Class : uint8_t { kSpace, kWord, kOther };
  Class current = Class::kSpace;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size();) {
    Class next = Class::kSpace;  // also after the end
    size_t num_bytes = 1;
    if (i < text.size()) {
      const unicode::CodePoint decoded = unicode::Decode(text.substr(i));
      num_bytes = decoded.num_bytes;
      const uint16_t properties = unicode::Properties(decoded.value);
      next = (properties & unicode::kWord) != 0         ? Class::kWord
             : (properties & unicode::kWhitespace) != 0 ? Class::kSpace
                                                        : Class::kOther;
    }
    if (next != current) {
      if (current != Class::kSpace) {
        out.push_back(text.substr(begin, i - begin));
      }
      begin = i;
      current = next;
    }
    i += num_bytes;
  }
}

// How BERT's pre-tokenizer takes a byte. Not ASCII: the code point decides.
enum class ByteClass : uint8_t { kWord, kSpace, kPunctuation, kNotAscii };

constexpr std::array<ByteClass, 256> MakeByteClasses() {
  std::array<ByteClass, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool is_alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    classes[c] = c >= 0x80                                 ? ByteClass::kNotAscii
                 : c == ' ' || (c >= 9 && c <= 13)         ? ByteClass::kSpace
                 : c > ' ' && c < 0x7F && !is_alphanumeric ? ByteClass::kPunctuation
                                                           : ByteClass::kWord;
  }
  return classes;
}
constexpr std::array<ByteClass, 256> kByteClasses = MakeByteClasses();

/// SplitByProperty by whitespace, removed, then by punctuation, isolated, in one pass.
void SplitAsBert(std::string_view text, Pieces& out) {
  size_t begin = 0;  // of the word in hand
  size_t i = 0;
  while (i < text.size()) {
    ByteClass byte_class = kByteClasses[static_cast<unsigned char>(text[i])];
    size_t num_bytes = 1;
    if (byte_class == ByteClass::kNotAscii) {
      const unicode::CodePoint decoded = unicode::Decode(text.substr(i));
      num_bytes = decoded.num_bytes;
      const uint16_t properties = unicode::Properties(decoded.value);
      byte_class = (properties & unicode::kWhitespace) != 0    ? ByteClass::kSpace
                   : (properties & unicode::kPunctuation) != 0 ? ByteClass::kPunctuation
                                                               : ByteClass::kWord;
    }
    if (byte_class == ByteClass::kWord) {
      i += num_bytes;
      continue;
    }
    if (begin < i) {
      out.push_back(text.substr(begin, i - begin));
    }
    if (byte_class == ByteClass::kPunctuation) {
      out.push_back(text.substr(i, num_bytes));
    }
    i += num_bytes;
    begin = i;
  }
  if (begin < text.size()) {
    out.push_back(text.substr(begin));
  }
}

void RunStage(const PreTokenizerStage& stage, std::string_view text, Status& status, Pieces& out) {
  switch (stage.kind) {
    case Kind::kBert: SplitAsBert(text, out); break;
    case Kind::kWhitespace: SplitWords(text, out); break;
    case Kind::kWhitespaceSplit:
      SplitByProperty(text, unicode::kWhitespace, SplitBehavior::kRemoved, out);
      break;
    case Kind::kPunctuation:
      SplitByProperty(text, unicode::kPunctuation, stage.behavior, out);
      break;
    case Kind::kDigits: SplitByProperty(text, unicode::kNumeric, stage.behavior, out); break;
    case Kind::kPattern: SplitByLiteral(stage, text, out); break;
    case Kind::kKnownExpression: SplitByPattern(*stage.expression, text, out); break;
    case Kind::kExpression: SplitByRegex(stage, text, status, out); break;
    case Kind::kFixedLength: SplitByLength(stage.length, text, out); break;
    case Kind::kMetaspace: break;  // writes: not a matter of one piece
    case Kind::kByteLevel:
      if (stage.expression) {
        SplitByPattern(*stage.expression, text, out);
      } else {
        out.push_back(text);
      }
      break;
  }
}

/// Whether `piece` lies in `text`, not only next to it.
bool LiesIn(std::string_view piece, std::string_view text) {
  const std::less_equal<> is_not_behind;
  return is_not_behind(text.data(), piece.data()) &&
         is_not_behind(piece.data() + piece.size(), text.data() + text.size());
}

/// Writes pieces anew, where what is written stands for characters of the piece, if that is asked.
class Rewriter {
 public:
  /// `num_bytes`: an upper bound of what will be written, so that nothing moves that pieces point
  /// to.
  Rewriter(const PreTokenizer::Origins* origins, const EncodeScratch& scratch, size_t num_bytes,
           RewrittenPieces& out)
      : origins_(origins), scratch_(scratch), out_(out) {
    out_.text.clear();
    out_.text.reserve(num_bytes);
    out_.origins.clear();
  }

  void Begin(std::string_view piece) {
    begin_ = out_.text.size();
    piece_ = piece;
    if (origins_ != nullptr) {
      spans_ = PreTokenizer::OriginsOfPiece(piece, *origins_, scratch_);
    }
  }
  /// Whether the piece comes from the first byte of the original; false where that is not known.
  bool BeginsOriginal() const { return origins_ != nullptr && spans_.front().begin == 0; }
  void Copy(size_t from, size_t count) {
    out_.text.append(piece_, from, count);
    if (origins_ != nullptr) {
      const auto copied = spans_.subspan(from, count);
      out_.origins.insert(out_.origins.end(), copied.begin(), copied.end());
    }
  }
  /// Writes `text`, which stands for what byte `from` does.
  void Put(std::string_view text, size_t from) {
    out_.text.append(text);
    if (origins_ != nullptr) {
      out_.origins.insert(out_.origins.end(), text.size(), spans_[from]);
    }
  }
  std::string_view Written() const { return std::string_view(out_.text).substr(begin_); }

 private:
  const PreTokenizer::Origins* origins_;
  const EncodeScratch& scratch_;
  RewrittenPieces& out_;
  size_t begin_ = 0;
  std::string_view piece_;
  std::span<const ByteSpan> spans_;
};

/// Pieces that do not begin with a space move to the scratch and get one. It stands for the first
/// character of the piece.
void PrefixSpaces(const PreTokenizer::Origins* origins, EncodeScratch& scratch, Pieces& pieces) {
  size_t size = 0;
  for (const std::string_view piece : pieces) {
    size += piece.size() + 1;
  }
  Rewriter rewriter(origins, scratch, size, scratch.prefixed);
  for (std::string_view& piece : pieces) {
    if (piece.starts_with(' ')) {
      continue;
    }
    rewriter.Begin(piece);
    rewriter.Put(" ", 0);
    rewriter.Copy(0, piece.size());
    piece = rewriter.Written();
  }
}

/// Writes each piece anew, its spaces replaced, and cuts it there. A mark that is put in front
/// stands for the first character.
void SplitAtMetaspaces(const PreTokenizerStage& stage, const Pieces& pieces,
                       const PreTokenizer::Origins* origins, const EncodeScratch& scratch,
                       RewrittenPieces& buffer, Pieces& out) {
  using Prepend = PreTokenizerStage::Prepend;
  const std::string_view mark = stage.pattern;
  size_t size = 0;
  for (const std::string_view piece : pieces) {
    const auto num_spaces = static_cast<size_t>(std::ranges::count(piece, ' '));
    size += piece.size() + (num_spaces + 1) * mark.size();
  }
  Rewriter rewriter(origins, scratch, size, buffer);
  for (const std::string_view piece : pieces) {
    rewriter.Begin(piece);
    const bool may_prepend = stage.prepend == Prepend::kAlways ||
                             (stage.prepend == Prepend::kFirst && rewriter.BeginsOriginal());
    if (may_prepend && !piece.starts_with(mark) && !piece.starts_with(' ')) {
      rewriter.Put(mark, 0);
    }
    for (size_t i = 0; i < piece.size();) {
      const size_t space = std::min(piece.find(' ', i), piece.size());
      rewriter.Copy(i, space - i);
      if (space < piece.size()) {
        rewriter.Put(mark, space);
      }
      i = space + 1;
    }
    if (stage.splits) {
      SplitByLiteral(stage, rewriter.Written(), out);
    } else {
      out.push_back(rewriter.Written());
    }
  }
}

}  // namespace

const std::vector<std::string_view>& PreTokenizer::SplitWithOrigins(const Origins& text,
                                                                    EncodeScratch& scratch) const {
  return SplitText(text.text, scratch, &text);
}

std::span<const ByteSpan> PreTokenizer::OriginsOfPiece(std::string_view piece, const Origins& text,
                                                       const EncodeScratch& scratch) {
  const auto part = [piece](std::string_view home, std::span<const ByteSpan> spans) {
    return spans.subspan(static_cast<size_t>(piece.data() - home.data()), piece.size());
  };
  for (const RewrittenPieces* pieces :
       {&scratch.prefixed, &scratch.metaspaced, &scratch.spare_metaspaced}) {
    if (LiesIn(piece, pieces->text)) {
      return part(pieces->text, pieces->origins);
    }
  }
  return part(text.text, text.spans);
}

const std::vector<std::string_view>& PreTokenizer::SplitText(std::string_view text,
                                                             EncodeScratch& scratch,
                                                             const Origins* origins) const {
  Pieces* in = &scratch.spare_pieces;
  Pieces* out = &scratch.pieces;
  RewrittenPieces* metaspaced = &scratch.metaspaced;
  RewrittenPieces* spare_metaspaced = &scratch.spare_metaspaced;
  in->clear();
  if (!text.empty()) {
    in->push_back(text);
  }
  for (const PreTokenizerStage& stage : stages_) {
    if (stage.add_prefix_space) {
      PrefixSpaces(origins, scratch, *in);
    }
    out->clear();
    if (stage.kind == Kind::kMetaspace) {
      std::swap(metaspaced, spare_metaspaced);
      SplitAtMetaspaces(stage, *in, origins, scratch, *metaspaced, *out);
    }
    for (const std::string_view piece : *in) {
      RunStage(stage, piece, scratch.status, *out);
    }
    std::swap(in, out);
  }
  return *in;
}

bool PreTokenizer::asks_for_beginning() const {
  return std::ranges::any_of(stages_, [](const PreTokenizerStage& stage) {
    return stage.kind == Kind::kMetaspace && stage.prepend == PreTokenizerStage::Prepend::kFirst;
  });
}

bool PreTokenizer::is_byte_level() const {
  return !stages_.empty() && stages_.back().kind == PreTokenizerStage::Kind::kByteLevel;
}

}  // namespace bouquet::text
