#pragma once

#include <filesystem>

#include "base/status.h"
#include "text/tokenizer_file.h"

namespace bouquet::text {

/// Builds RoBERTa's or GPT-2's byte-level tokenizer from vocab.json and merges.txt, as the
/// `transformers` library does for a folder without tokenizer.json. Which of the two is said by
/// "tokenizer_class" of tokenizer_config.json, else "model_type" of config.json, else by the
/// special tokens of the vocabulary. Those files and special_tokens_map.json may rename special
/// tokens; as in the tokenizer.json that RoBERTa was published with, its mask takes whitespace on
/// its left along. Error: kInvalidArgument naming the file, and the line of a merge; kUnimplemented
/// naming a class or a setting that is not served.
Result<TokenizerFile> ReadVocabularyJson(const std::filesystem::path& folder, bool lowercase_first);

}  // namespace bouquet::text
