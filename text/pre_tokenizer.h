#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/encode_scratch.h"
#include "text/regex.h"
#include "text/split_pattern.h"

namespace bouquet::text {

/// What happens to a delimiter that splits: the names are tokenizer.json's "behavior".
enum class SplitBehavior : uint8_t {
  kRemoved,
  kIsolated,
  kContiguous,
  kMergedWithPrevious,
  kMergedWithNext,
};

/// One step of a pre-tokenizer as tokenizer.json states it; only the fields of its kind count.
struct PreTokenizerStage {
  enum class Kind : uint8_t {
    kBert,             // split at whitespace; punctuation alone
    kWhitespace,       // runs of word characters, and runs of what is neither word nor space
    kWhitespaceSplit,  // split at whitespace
    kPunctuation,
    kDigits,           // numeric characters alone (kIsolated) or in runs (kContiguous)
    kPattern,          // a literal string: "Split", "CharDelimiterSplit"
    kKnownExpression,  // one of split_pattern.h, whose matches are the pieces: "Split"
    kExpression,       // any other regular expression: "Split"
    kFixedLength,
    kByteLevel,  // GPT-2's: the last stage, of a vocabulary that is written in bytes
    kMetaspace,  // SentencePiece's: ' ' becomes a visible character, which begins words
  };
  enum class Prepend : uint8_t { kAlways, kFirst, kNever };
  Kind kind = Kind::kBert;
  // kPunctuation, kDigits, kPattern, kExpression
  SplitBehavior behavior = SplitBehavior::kIsolated;
  std::string pattern;                     // kPattern: not empty
  bool invert = false;                     // kPattern, kExpression: the pattern is what is kept
  std::shared_ptr<const Regex> regex;      // kExpression
  std::optional<SplitPattern> expression;  // kKnownExpression; kByteLevel: with "use_regex"
  size_t length = 1;                       // kFixedLength: characters, at least one
  bool add_prefix_space = false;           // kByteLevel: every piece begins with a space
  // kMetaspace: `pattern` is the character; it is put before pieces that do not begin with it, and
  // `splits` says whether it cuts: `behavior` is kMergedWithNext.
  Prepend prepend = Prepend::kAlways;
  bool splits = true;
};

/// Normalized text → the pieces that the model sees one at a time, by stages run one after another.
/// Immutable. Thread: any, each with its own scratch.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<PreTokenizerStage> stages = {}) : stages_(std::move(stages)) {}

  /// The pieces, none empty, point into `text` or the scratch; they hold until the next call. For
  /// text that begins with the first byte of the original and a pre-tokenizer that
  /// asks_for_beginning, SplitWithOrigins must be called instead. An expression that gives up
  /// (regex.h) leaves its error in `scratch.status`.
  const std::vector<std::string_view>& Split(std::string_view text, EncodeScratch& scratch) const {
    return SplitText(text, scratch, nullptr);
  }
  /// Whether something is put before what comes from the first byte of the original.
  bool asks_for_beginning() const;

  /// A text and what each of its bytes stands for in the original.
  struct Origins {
    std::string_view text;
    std::span<const ByteSpan> spans;  // one a byte
  };
  /// Split of `text.text`, such that OriginsOfPiece can be asked for each piece.
  const std::vector<std::string_view>& SplitWithOrigins(const Origins& text,
                                                        EncodeScratch& scratch) const;
  /// What each byte of a piece stands for.
  static std::span<const ByteSpan> OriginsOfPiece(std::string_view piece, const Origins& text,
                                                  const EncodeScratch& scratch);
  /// Whether the model's vocabulary is written in the alphabet of byte_level.h.
  bool is_byte_level() const;

 private:
  const std::vector<std::string_view>& SplitText(std::string_view text, EncodeScratch& scratch,
                                                 const Origins* origins) const;

  std::vector<PreTokenizerStage> stages_;
};

}  // namespace bouquet::text
