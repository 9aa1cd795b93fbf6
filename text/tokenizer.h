#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/token_spans.h"

namespace bouquet::text {

/// Buffers of one caller; reused from call to call, so that encoding does not allocate in the
/// steady state. One per thread. The tokenizer kinds keep their own part in
/// `text/encode_scratch.h`.
class EncodeScratch;

struct EncodeOptions {
  /// Text such as "[SEP]" becomes the special token, as the reference does; false: it is text like
  /// any other.
  bool parse_special = true;
};

struct DecodeOptions {
  bool skip_special_tokens = true;
  /// "clean_up_tokenization_spaces" of tokenizer_config.json, as the `transformers` library does
  /// it.
  bool clean_up_spaces = false;
};

/// Text → token ids by one tokenizer.json (or vocab.txt). No truncation, no special tokens around:
/// see text_pipeline.h. Immutable after loading. Thread: any, each with its own scratch.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Appends the ids of `text`, equal to the reference library's with add_special_tokens = false.
  /// `text` must be valid UTF-8 (checked by callers at the edge; invalid bytes are a CHECK in debug
  /// builds only). NUL is a character. Error: kInvalidArgument where a regular expression of the
  /// file gives up on this text (regex.h); what was appended is then to be dropped.
  virtual Status Encode(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
                        std::vector<int32_t>& ids) const = 0;

  /// The same, and overwrites `spans` with what each of the ids that it appends stands for, equal
  /// to the reference's offsets. Costs about twice as much.
  virtual Status EncodeWithSpans(std::string_view text, const EncodeOptions& options,
                                 EncodeScratch& scratch, std::vector<int32_t>& ids,
                                 TokenSpans& spans) const = 0;

  /// The text of token ids, equal to the reference's `decode`; ids that do not exist are left out.
  /// Always valid UTF-8. Error: kUnimplemented or kInvalidArgument naming the part of the file's
  /// decoder that is not served.
  virtual Result<std::string> Decode(std::span<const int32_t> ids,
                                     const DecodeOptions& options) const = 0;

  /// The token's string as the vocabulary holds it ("##ing"); empty for an unknown id.
  virtual std::string_view Piece(int32_t id) const = 0;
  virtual int32_t vocabulary_size() const = 0;  // one more than the largest id
};

}  // namespace bouquet::text
