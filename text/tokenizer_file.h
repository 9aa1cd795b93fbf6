#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/post_processor.h"
#include "text/tokenizer.h"

namespace bouquet::text {

/// What a tokenizer file holds that Bouquet uses. Its truncation and padding settings are ignored:
/// the length policy is the caller's.
struct TokenizerFile {
  std::unique_ptr<Tokenizer> tokenizer;
  PostProcessor post_processor;
};

/// Reads the text of a tokenizer.json. `source` names it in errors. `lowercase_first` puts a
/// lowercasing stage in front unless the normalizer has one. Error: kInvalidArgument naming the
/// key; kUnimplemented naming the tokenizer kind or stage that is not served.
Result<TokenizerFile> ParseTokenizerJson(std::string_view json, const std::string& source,
                                         bool lowercase_first);

/// Reads tokenizer.json of a folder, else vocab.txt with tokenizer_config.json, else a
/// SentencePiece model, else vocab.json with merges.txt. Error: kNotFound naming the files looked
/// for; else as above.
Result<TokenizerFile> ReadTokenizerFolder(const std::filesystem::path& folder,
                                          bool lowercase_first);

}  // namespace bouquet::text
