#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/added_tokens.h"

namespace bouquet::text {

// The parts of tokenizer_config.json and special_tokens_map.json that several kinds of tokenizers
// without tokenizer.json read. What a file does not state keeps its value. Error: kInvalidArgument
// naming file and key.

/// Calls `read` for the object that the file is, if there is one.
template <class Read>
Status ReadIfThere(const std::filesystem::path& path, Read read) {
  if (!std::filesystem::exists(path)) {
    return {};
  }
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::ParseFile(path));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), path.string()));
  return read(object);
}

/// "tokenizer_class" without the "Fast" that some end with; empty where none is stated.
Result<std::string> ReadTokenizerClass(const JsonObject& config);
/// A token is a string, or an object with "content" in files written by older versions.
Status ReadToken(const JsonObject& config, std::string_view key, std::string& token);
Status ReadFlag(const JsonObject& object, std::string_view key, bool& flag);
/// "added_tokens_decoder": {"100": {"content": "[UNK]", …}, …}, appended in the order of ids.
Status ReadAddedTokens(const JsonObject& config, std::vector<AddedToken>& added);

/// The text of a file, which must be UTF-8. Error: kNotFound too.
Result<std::string> ReadTextFile(const std::filesystem::path& path);
/// Cuts the first line off `text`, and gives it without its end ("\n" or "\r\n").
std::string_view TakeLine(std::string_view& text);

}  // namespace bouquet::text
