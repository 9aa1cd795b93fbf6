#include "model/input_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include "model/config_file.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kModuleFileNames = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

constexpr int64_t kMaxStatedTokens = 1 << 30;

Status RefuseOther(const JsonObject& config, std::string_view key, std::string_view served) {
  ASSIGN_OR_RETURN(const std::optional<std::string> value, config.String(key));
  if (value && *value != served) {
    return Unimplemented(
        fmt::format("{}: \"{}\" {} is not served, only {}", config.where(), key, *value, served),
        std::string(key));
  }
  return {};
}

Result<std::optional<int64_t>> ReadModuleFile(const fs::path& path, InputRule& rule) {
  ASSIGN_OR_RETURN(const JsonDocument document,
                   ReadConfigFile(path, "the longest input of the Transformer module"));
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document.root(), document.source()));
  RETURN_IF_ERROR(RefuseOther(config, "transformer_task", "feature-extraction"));
  RETURN_IF_ERROR(RefuseOther(config, "module_output_name", "token_embeddings"));
  ASSIGN_OR_RETURN(const std::optional<bool> lower_case, config.Bool("do_lower_case"));
  rule.lower_case = lower_case.value_or(false);
  return config.Integer("max_seq_length", 1, kMaxStatedTokens);
}

// Often int(1e30), "no limit", hence read as a number.
Result<std::optional<double>> TokenizerMaxLength(const fs::path& folder) {
  ASSIGN_OR_RETURN(const std::optional<JsonDocument> document,
                   ReadOptionalConfigFile(folder / "tokenizer_config.json",
                                          "the longest input of the tokenizer"));
  if (!document) {
    return std::optional<double>();
  }
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document->root(), document->source()));
  ASSIGN_OR_RETURN(const std::optional<double> length, config.Number("model_max_length"));
  if (length && !(*length >= 1)) {
    return InvalidArgument(
        fmt::format("{}: \"model_max_length\" must be at least 1, not {}", config.where(), *length),
        "model_max_length");
  }
  return length;
}

}  // namespace

fs::path TransformerModuleFile(const fs::path& transformer_folder) {
  std::error_code ignored;
  for (const std::string_view name : kModuleFileNames) {
    const fs::path path = transformer_folder / name;
    if (fs::exists(path, ignored)) {
      return path;
    }
  }
  return {};
}

Result<InputRule> ReadInputRule(const fs::path& transformer_folder, const Traits& traits) {
  InputRule rule;
  rule.max_tokens = traits.max_positions;
  if (const fs::path path = TransformerModuleFile(transformer_folder); !path.empty()) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> stated, ReadModuleFile(path, rule));
    if (stated) {
      rule.max_tokens = static_cast<int32_t>(std::min<int64_t>(*stated, traits.max_positions));
      return rule;
    }
  }
  ASSIGN_OR_RETURN(const std::optional<double> length, TokenizerMaxLength(transformer_folder));
  if (length) {
    rule.max_tokens =
        static_cast<int32_t>(std::min<double>(*length, static_cast<double>(traits.max_positions)));
  }
  return rule;
}

}  // namespace bouquet::model
