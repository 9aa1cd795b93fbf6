#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/charsmap.h"
#include "text/encode_scratch.h"
#include "text/regex.h"

namespace bouquet::text {

/// One step of a normalizer as tokenizer.json states it; only the fields of its kind count.
struct NormalizerStage {
  enum class Kind : uint8_t {
    kBert,
    kLowercase,
    kStripAccents,
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kNmt,
    kReplace,
    kReplaceExpression,
    kReplaceSpaces,
    kStrip,
    kPrepend,
    kByteLevel,  // bytes as the alphabet of byte_level.h writes them
    kPrecompiled,
  };
  Kind kind = Kind::kLowercase;
  bool clean_text = false;                   // kBert: drop control characters, make whitespace ' '
  bool handle_chinese_chars = false;         // kBert: put ' ' around CJK ideographs
  bool strip_accents = false;                // kBert: decompose, drop nonspacing marks
  bool lowercase = false;                    // kBert
  bool strip_left = false;                   // kStrip
  bool strip_right = false;                  // kStrip
  bool spaces_only = false;                  // kStrip: ' ' and no other whitespace
  std::string pattern;                       // kReplace: literal, not empty
  std::string content;                       // kReplace, kReplace…, kPrepend: not empty
  std::shared_ptr<const Regex> regex;        // kReplaceExpression
  uint32_t min_spaces = 1;                   // kReplaceSpaces: runs of ' ' from this length on
  std::shared_ptr<const Charsmap> charsmap;  // kPrecompiled
};

/// Text → normalized text, by stages run one after another. Equal to the reference on every valid
/// UTF-8 text. Immutable. Thread: any, each with its own scratch.
class Normalizer {
 public:
  explicit Normalizer(std::vector<NormalizerStage> stages = {}) : stages_(std::move(stages)) {}

  /// The result lies in the scratch (or is `text` itself) and holds until the next call with it.
  /// Where an expression gives up (regex.h), or the text would become more than 64 times as long,
  /// the error is left in `scratch.status`.
  std::string_view Normalize(std::string_view text, EncodeScratch& scratch) const;
  /// The same, where `text` is found in the original from byte `begin` on: of each byte of the
  /// result, scratch.origins is the characters of the original that it stands for.
  std::string_view NormalizeWithOrigins(std::string_view text, size_t begin,
                                        EncodeScratch& scratch) const;

  const std::vector<NormalizerStage>& stages() const { return stages_; }

 private:
  std::vector<NormalizerStage> stages_;
};

}  // namespace bouquet::text
