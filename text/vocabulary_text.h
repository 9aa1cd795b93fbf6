#pragma once

#include <filesystem>

#include "base/status.h"
#include "text/tokenizer_file.h"

namespace bouquet::text {

/// Builds BERT's tokenizer from vocab.txt (one token a line, ids by line) and what
/// tokenizer_config.json says of it, as the `transformers` library does for a folder without
/// tokenizer.json. Error: kInvalidArgument naming the file; kUnimplemented naming a tokenizer class
/// that is not BERT's.
Result<TokenizerFile> ReadVocabularyText(const std::filesystem::path& folder, bool lowercase_first);

}  // namespace bouquet::text
