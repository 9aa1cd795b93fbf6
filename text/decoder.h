#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/regex.h"

namespace bouquet::text {

/// One step of a decoder as tokenizer.json states it; only the fields of its kind count.
struct DecoderStage {
  enum class Kind : uint8_t {
    kWordPiece,     // a token that does not begin with `pattern` gets a space in front
    kByteLevel,     // the alphabet of byte_level.h becomes bytes, these UTF-8
    kMetaspace,     // `pattern` becomes a space, or nothing in the first token
    kBpe,           // `pattern` ends words
    kByteFallback,  // "<0x0A>" becomes its byte
    kFuse,          // all tokens become one
    kStrip,         // the character `pattern` at the ends, so many at most
    kReplace,       // `pattern`, a literal, or what `regex` matches, by `content`
    kCtc,           // repeats and `pattern` go, `content` becomes a space
  };
  Kind kind = Kind::kFuse;
  std::string pattern;
  std::string content;
  std::shared_ptr<const Regex> regex;  // kReplace, or null
  bool clean_up = false;  // kWordPiece, kCtc: no spaces before punctuation, as English has it
  bool drops_first_mark = false;  // kMetaspace
  size_t strip_start = 0;         // kStrip
  size_t strip_stop = 0;
};

/// Tokens as the vocabulary spells them → text, by stages run one after another. Immutable. Thread:
/// any.
class Decoder {
 public:
  /// No stages: tokens are joined with a space between them.
  Decoder() = default;
  explicit Decoder(std::vector<DecoderStage> stages) : stages_(std::move(stages)), separator_("") {}

  /// Valid UTF-8, as the reference makes it: bytes that are none become U+FFFD. Error:
  /// kInvalidArgument where an expression gives up (regex.h), or the text would become more than 64
  /// times as long as the tokens.
  Result<std::string> Decode(std::vector<std::string> tokens) const;

 private:
  std::vector<DecoderStage> stages_;
  std::string separator_ = " ";
};

/// The part "decoder" of a tokenizer.json. Error: kInvalidArgument naming the key; kUnimplemented
/// naming the stage.
Result<Decoder> ParseDecoder(const JsonObject& root);

/// "clean_up_tokenization_spaces" of tokenizer_config.json: as the `transformers` library removes
/// spaces before English punctuation.
std::string CleanUpSpaces(std::string text);

}  // namespace bouquet::text
