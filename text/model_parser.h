#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "text/token_model.h"

namespace bouquet::text {

// The part "model" of a tokenizer.json. Error: kInvalidArgument naming the key; kUnimplemented
// naming the kind or the setting.

struct ParsedModel {
  std::unique_ptr<TokenModel> model;
  TokenList tokens;  // points into the file
};

/// Whether the model's kind is served. `where` names the file.
Status CheckModelKind(const JsonObject& model, const std::string& where);

/// `byte_level`: the pre-tokenizer hands over bytes, and the vocabulary is written in the alphabet
/// of byte_level.h.
Result<ParsedModel> ParseModel(const JsonObject& model, bool byte_level);

/// {"token": id, …}: "vocab" of most models, and vocab.json.
Result<TokenList> ParseTokenIds(const JsonObject& vocabulary);

/// Why a tokenizer of this kind is refused.
Status ModelNotServed(const std::string& where, std::string_view kind);

}  // namespace bouquet::text
