#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/encode_scratch.h"
#include "text/tokenizer.h"

namespace bouquet::text {

/// The tokens of one input, ready for the engine.
struct TokenSequence {
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;   // empty when all are 0
  int32_t pooling_start = 0;       // first token that pooling counts
  int32_t untruncated_tokens = 0;  // what the length would have been
  // Only when asked for, one a token: the bytes that it stands for of its text (prompt included),
  // 0 .. 0 for a special token that was added; and 1 for such a token.
  std::vector<ByteSpan> spans;
  std::vector<uint8_t> special_mask;
  bool truncated() const { return untruncated_tokens > static_cast<int32_t>(ids.size()); }
};

enum class OverLength : uint8_t { kError, kTruncate };
enum class TruncationSide : uint8_t { kRight, kLeft };  // which end is dropped

/// Which of two texts truncation shortens.
enum class PairTruncation : uint8_t {
  kSecondFirst,   // the second; the first keeps at most 3/4 of the room when both are long
  kLongestFirst,  // the longer down to the length of the other, then both alike
  kOnlyFirst,     // kOnlyFirst and kOnlySecond fail when that text would be left with no token
  kOnlySecond,    // a text that is not one of a pair: fails
};

struct LengthPolicy {
  OverLength over_length = OverLength::kError;
  TruncationSide side = TruncationSide::kRight;
  int32_t max_tokens = 0;  // special tokens and prompt included; 0: no limit
  PairTruncation pair = PairTruncation::kSecondFirst;
};

struct PipelineOptions {
  LengthPolicy length;
  std::string_view prompt;  // put before the text; empty for none
  bool exclude_prompt_from_pooling = false;
  bool parse_special = true;
  bool add_special_tokens = true;
  bool with_spans = false;  // fills TokenSequence::spans and special_mask
};

/// prompt → tokenize → special tokens → truncate, as one straight function over a model folder's
/// tokenizer files. Immutable. Thread: any, each with its own scratch.
class TextPipeline {
 public:
  /// Reads tokenizer.json, else vocab.txt with tokenizer_config.json. A folder with nothing but
  /// tokenizer files will do. Error: kNotFound naming the files looked for; kUnimplemented naming
  /// the tokenizer kind or stage that is not served; kInvalidArgument naming file and key.
  /// `lowercase_first` is sentence_bert_config.json's do_lower_case.
  static Result<std::unique_ptr<TextPipeline>> Load(const std::filesystem::path& folder,
                                                    bool lowercase_first);
  ~TextPipeline();

  /// Error: kInvalidArgument for invalid UTF-8 (byte offset) and for an input over the length limit
  /// when the policy is kError (count and limit in the message). Truncation keeps special tokens,
  /// prompt first.
  Result<TokenSequence> Encode(std::string_view text, const PipelineOptions& options,
                               EncodeScratch& scratch) const;

  /// A pair, with the special tokens and types that the post-processor states. kTruncate cuts as
  /// LengthPolicy::pair says.
  Result<TokenSequence> EncodePair(std::string_view first, std::string_view second,
                                   const PipelineOptions& options, EncodeScratch& scratch) const;

  /// Token ids from the caller, verbatim: nothing is added; truncation simply cuts.
  Result<TokenSequence> TakeIds(std::vector<int32_t> ids, const PipelineOptions& options) const;

  /// The text of ids: Tokenizer::Decode.
  Result<std::string> Decode(std::span<const int32_t> ids, const DecodeOptions& options) const;

  const Tokenizer& tokenizer() const;
  /// How many special tokens a single text gets.
  int32_t num_special_tokens() const;

 private:
  class Impl;
  explicit TextPipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bouquet::text
