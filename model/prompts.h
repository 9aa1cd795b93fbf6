#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"

namespace bouquet::model {

/// Named text prefixes of config_sentence_transformers.json.
struct Prompts {
  std::map<std::string, std::string> by_name;
  std::optional<std::string> default_name;
};

/// config_sentence_transformers.json: what the folder says about its use.
struct UseDefaults {
  Prompts prompts;
  std::optional<int32_t> truncate_dim;  // default of `dimensions`
};

/// Reads config_sentence_transformers.json; without the file there are no prompts. Error:
/// kInvalidArgument naming file and key, also when the default prompt is not among the prompts;
/// kUnimplemented for a model_type other than SentenceTransformer.
Result<UseDefaults> ReadUseDefaults(const std::filesystem::path& folder);

}  // namespace bouquet::model
