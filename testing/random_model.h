#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bouquet::testing {

enum class RandomFamily : uint8_t {
  kBert,
  kRoberta,
  kXlmRoberta,
  kMpnet,
  kDistilBert,
  kQwen3Causal,
  kQwen3Bidirectional,
};

/// A tensor as a file holds it, in float32 before it is written.
struct RandomTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// What to write. The defaults of an empty `pooling_modes`: mean, the first token for XLM-RoBERTa,
/// the last one for the causal family.
struct RandomModelOptions {
  RandomFamily family = RandomFamily::kBert;
  uint64_t seed = 1;
  std::string prefix;                      // in front of every tensor's name: "bert.", "model."
  int shards = 1;                          // more than one writes model.safetensors.index.json too
  std::string dtype = "F32";               // F32 | F16 | BF16
  bool attention_bias = false;             // Qwen3
  bool harmless_extras = false;            // tensors that real files carry and nobody uses
  std::vector<std::string> pooling_modes;  // names of the `pooling_mode` key
  int dense_out_features = 0;              // > 0 adds a Dense module behind the pooling
  std::string dense_activation = "torch.nn.modules.activation.Tanh";  // empty: the key is left out
  bool dense_bias = true;
  bool dense_residual = false;
  bool normalize = true;  // ends with a Normalize module
};

/// The tensors of the transformer by name, prefix included. Every value follows from the seed, the
/// name without prefix and the index alone, and is exact in float32, float16 and bfloat16, so one
/// seed gives the same network in every dtype. tools/make_random_model.py makes the same ones.
std::map<std::string, RandomTensor> RandomTensors(const RandomModelOptions& options);

/// Writes a tiny model folder in the layout of sentence-transformers, without a tokenizer.
void WriteRandomModel(const std::filesystem::path& folder, const RandomModelOptions& options);

/// Writes one safetensors file. `dtype` is F32, F16 or BF16; names starting with "int64:" are
/// written as I64 under the rest of the name.
void WriteSafetensors(const std::filesystem::path& path,
                      const std::map<std::string, RandomTensor>& tensors, const std::string& dtype);

/// Replaces a file's content.
void WriteFile(const std::filesystem::path& path, const std::string& content);
std::string ReadFile(const std::filesystem::path& path);

}  // namespace bouquet::testing
