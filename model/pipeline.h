#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "model/traits.h"

namespace bouquet::model {

// modules.json as an ordered pipeline (design: a sentence-transformers folder, unchanged). The
// Transformer comes first and is not in the list; what follows turns hidden states into one row.

enum class PoolingMode : uint8_t { kCls, kMax, kMean, kMeanSqrtLength, kWeightedMean, kLastToken };

/// As config files spell it: "mean", "mean_sqrt_len_tokens", …
std::string_view PoolingModeName(PoolingMode mode);

struct PoolingModule {
  std::vector<PoolingMode> modes;  // several are concatenated in this order
  bool include_prompt = true;      // false: the prompt's tokens do not count
};

struct DenseModule {
  std::filesystem::path
      folder;  // holds model.safetensors with linear.weight [out, in] and linear.bias
  int32_t in_features = 0;
  int32_t out_features = 0;
  bool bias = true;
  std::string activation;  // "identity" | "tanh" | "relu" | "gelu" | "sigmoid" | "silu"
  bool use_residual = false;
};

struct NormalizeModule {};

using Module = std::variant<PoolingModule, DenseModule, NormalizeModule>;

struct Pipeline {
  std::filesystem::path
      transformer_folder;  // config.json and weights; usually the model folder itself
  std::vector<Module> modules;
  std::vector<std::filesystem::path>
      module_folders;  // [modules.size()]; empty without modules.json
  int32_t width = 0;   // of the row that leaves the last module
  bool ends_normalized =
      false;  // the last module is Normalize: the model's own default for OutputSpec::normalize
};

/// The folder of the Transformer, the first entry of modules.json: it holds config.json, weights
/// and tokenizer. Without modules.json `folder` itself. Error: as ParsePipeline for modules.json.
Result<std::filesystem::path> FindTransformerFolder(const std::filesystem::path& folder);

/// Reads modules.json and the module folders. Without modules.json: mean pooling, or last-token
/// pooling when `architectures` names a ...ForCausalLM class, as the reference library does. Error:
/// kUnimplemented for a module type that is not served, by index and name; kNotFound naming a
/// missing file; kInvalidArgument naming file and key, also when neighbours disagree about a width.
Result<Pipeline> ParsePipeline(const std::filesystem::path& folder, const Traits& traits);

}  // namespace bouquet::model
