#pragma once

#include <cstdint>
#include <filesystem>

#include "base/status.h"
#include "model/traits.h"

namespace bouquet::model {

/// What the Transformer module's own file says about its input.
struct InputRule {
  /// Longest input in tokens, special tokens included: `max_seq_length` if stated, else the smaller
  /// of tokenizer_config.json's `model_max_length` and the model's positions; never above the
  /// positions.
  int32_t max_tokens = 0;
  bool lower_case = false;  // lowercase the text before the tokenizer
};

/// Reads sentence_bert_config.json or, if absent, the first of its older names, and
/// tokenizer_config.json; each may be absent. Error: kInvalidArgument naming file and key;
/// kUnimplemented for a task other than feature extraction.
Result<InputRule> ReadInputRule(const std::filesystem::path& transformer_folder,
                                const Traits& traits);

/// The file that ReadInputRule reads, or an empty path when there is none.
std::filesystem::path TransformerModuleFile(const std::filesystem::path& transformer_folder);

}  // namespace bouquet::model
