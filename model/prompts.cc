#include "model/prompts.h"

#include <fmt/format.h>

#include "model/config_file.h"

namespace bouquet::model {
namespace {

Status ReadPrompts(const JsonObject& config, Prompts& prompts) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> by_name, config.Object("prompts"));
  if (by_name) {
    for (const auto [name, value] : by_name->object()) {
      std::string_view text;
      if (value.get_string().get(text) != simdjson::SUCCESS) {
        return InvalidArgument(fmt::format("{}: prompt \"{}\" must be a string, not {}",
                                           config.where(), name, JsonTypeName(value)),
                               fmt::format("prompts.{}", name));
      }
      prompts.by_name[std::string(name)] = std::string(text);
    }
  }
  ASSIGN_OR_RETURN(prompts.default_name, config.String("default_prompt_name"));
  if (prompts.default_name && !prompts.by_name.contains(*prompts.default_name)) {
    return InvalidArgument(
        fmt::format("{}: \"default_prompt_name\" must be one of the {} prompts: {}", config.where(),
                    prompts.by_name.size(), *prompts.default_name),
        "default_prompt_name");
  }
  return {};
}

}  // namespace

Result<UseDefaults> ReadUseDefaults(const std::filesystem::path& folder) {
  UseDefaults defaults;
  ASSIGN_OR_RETURN(const std::optional<JsonDocument> document,
                   ReadOptionalConfigFile(folder / "config_sentence_transformers.json", "prompts"));
  if (!document) {
    return defaults;
  }
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document->root(), document->source()));
  ASSIGN_OR_RETURN(const std::optional<std::string> type, config.String("model_type"));
  if (type.value_or("SentenceTransformer") != "SentenceTransformer") {
    return Unimplemented(
        fmt::format("{}: \"model_type\" {} is not served, only SentenceTransformer", config.where(),
                    *type),
        "model_type");
  }
  RETURN_IF_ERROR(ReadPrompts(config, defaults.prompts));
  ASSIGN_OR_RETURN(const std::optional<int64_t> dimensions,
                   config.Integer("truncate_dim", 1, 1 << 20));
  if (dimensions) {
    defaults.truncate_dim = static_cast<int32_t>(*dimensions);
  }
  return defaults;
}

}  // namespace bouquet::model
