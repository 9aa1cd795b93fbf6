#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_span.h"
#include "text/encode_scratch.h"

namespace bouquet::text {

/// The last stage of a tokenizer: one piece of normalized text → token ids, by a vocabulary.
/// Immutable as seen from outside. Thread: any, each with its own scratch.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the ids of `piece` (valid UTF-8, not empty), and to `spans`, unless it is null, for
  /// each id the bytes of the piece that it stands for, as the reference counts them.
  virtual void Encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& ids,
                      std::vector<ByteSpan>* spans) const = 0;
  /// The id of a token as the vocabulary spells it, or -1.
  virtual int32_t Id(std::string_view token) const = 0;
  /// Distinct token strings.
  virtual size_t num_tokens() const = 0;
};

/// A vocabulary as its file states it: strings, which point into that file, and ids in
/// 0 .. Vocabulary::kMaxTokens - 1.
using TokenList = std::vector<std::pair<std::string_view, int32_t>>;

}  // namespace bouquet::text
