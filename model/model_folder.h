#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/pipeline.h"
#include "model/prompts.h"
#include "model/traits.h"

namespace bouquet::model {

/// A Hugging Face or sentence-transformers folder, read but for its weights and its tokenizer.
struct ModelFolder {
  std::filesystem::path path;
  std::string name;  // the folder's own name, or what the user gives it: the `model` of requests
  Traits traits;
  Pipeline pipeline;
  Prompts prompts;
  std::optional<int32_t> truncate_dim;  // default of `dimensions`
  /// Longest input in tokens, special tokens included: max_seq_length if the folder states it, else
  /// the smaller of the tokenizer's model_max_length and the positions of the model; never above
  /// the positions.
  int32_t max_input_tokens = 0;
  bool do_lower_case =
      false;  // sentence_bert_config.json asks for lowercasing before the tokenizer
  std::vector<std::filesystem::path>
      weight_files;  // *.safetensors of the transformer, in shard order
  /// Hash of config and module files and of samples of the weights, without tokenizer and prompt
  /// files: replicas of another identity do not mix. See model/identity.h.
  std::string identity;

  /// Error: kNotFound naming the missing file and what it is for; kInvalidArgument naming file and
  /// key; kUnimplemented for what is not served (module types, pickled .bin weights: says how to
  /// convert them).
  static Result<ModelFolder> Open(const std::filesystem::path& path);
};

}  // namespace bouquet::model
