#pragma once

#include <filesystem>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer_file.h"

namespace bouquet::text {

/// The most bytes of a SentencePiece model file.
inline constexpr uintmax_t kMaxSentencePieceBytes = uintmax_t{100} << 20;

/// What a tokenizer_config.json beside a SentencePiece model file says of how it is used.
struct SentencePieceUse {
  enum class Kind : uint8_t {
    kPlain,       // the file's own rules: SentencePiece's ids, or LLaMA's
    kT5,          // 100 ids are added, "</s>" ends a text
    kXlmRoberta,  // the ids are moved for "<pad>" and "<mask>"; "<s>" and "</s>" frame a text
  };
  Kind kind = Kind::kPlain;
  int32_t num_extra_ids = 100;         // kT5
  bool prefixes_every_section = true;  // kPlain: after added tokens too; else only the first
  bool adds_bos = false;               // kPlain
  bool adds_eos = false;               // kPlain
};

/// Builds a tokenizer from the bytes of a SentencePiece model file, as the `transformers` library
/// converts it. `source` names it in errors. Error: kInvalidArgument for bytes that are no such
/// file or contradict themselves; kUnimplemented for the kinds "word" and "char".
Result<TokenizerFile> ParseSentencePiece(std::string_view bytes, const std::string& source,
                                         const SentencePieceUse& use, bool lowercase_first);

/// Reads such a file and, where there is one, the tokenizer_config.json beside it. Error: as above;
/// kUnimplemented naming a tokenizer class that has its own conversion.
Result<TokenizerFile> ReadSentencePieceFile(const std::filesystem::path& path,
                                            bool lowercase_first);

}  // namespace bouquet::text
