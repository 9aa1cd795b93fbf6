#include "testing/random_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

namespace bouquet::testing {
namespace {

namespace fs = std::filesystem;

// Sizes that expose mistakes: no width is a multiple of a vector register, heads · head_dim is not
// hidden_size for Qwen3, keys and values have fewer heads than queries.
constexpr int64_t kVocabulary = 300;
constexpr int64_t kPositions = 640;       // rows of the position table, or the longest input
constexpr int64_t kPaddingId = 1;         // of RoBERTa and MPNet: positions start behind it
constexpr int64_t kDistanceBuckets = 32;  // of MPNet

struct Sizes {
  int64_t layers, hidden, heads, kv_heads, head_dim, intermediate;
};
constexpr Sizes kBertSizes = {2, 72, 6, 6, 12, 150};
constexpr Sizes kQwen3Sizes = {3, 40, 6, 2, 16, 100};

bool HasBertLayers(RandomFamily family) {
  return family == RandomFamily::kBert || family == RandomFamily::kRoberta ||
         family == RandomFamily::kXlmRoberta || family == RandomFamily::kMpnet ||
         family == RandomFamily::kDistilBert;
}

uint64_t Fnv1a64(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

// The finalizer of splitmix64 over a counter: value i is known without the values before it.
uint64_t RandomBits(uint64_t key, uint64_t i) {
  uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

RandomTensor MakeTensor(uint64_t seed, const std::string& name, std::vector<int64_t> shape) {
  const uint64_t key = Fnv1a64(fmt::format("{}:{}", seed, name));
  const bool is_vector = shape.size() == 1;
  float offset = 0;
  float scale = 1;  // embedding tables
  if (is_vector && name.ends_with("weight")) {
    offset = 1;  // gain of a norm, far from 1
    scale = 0.5F;
  } else if (is_vector) {
    scale = 0.25F;
  } else if (name.find("embed") == std::string::npos) {
    const int half_bits =
        (static_cast<int>(std::bit_width(static_cast<uint64_t>(shape[1]))) - 1) / 2;
    scale = 2.0F / static_cast<float>(1 << half_bits);
  }
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  RandomTensor tensor{std::move(shape), std::vector<float>(static_cast<size_t>(count))};
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const auto step = static_cast<int>(RandomBits(key, i) >> 57) - 64;
    tensor.values[i] = offset + scale * static_cast<float>(step) / 64.0F;
  }
  return tensor;
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

void AddLinear(const std::string& name, int64_t out, int64_t in, bool bias, Shapes& shapes) {
  shapes[name + ".weight"] = {out, in};
  if (bias) {
    shapes[name + ".bias"] = {out};
  }
}

void AddLayerNorm(const std::string& name, int64_t width, Shapes& shapes) {
  shapes[name + ".weight"] = {width};
  shapes[name + ".bias"] = {width};
}

int64_t TokenTypes(RandomFamily family) {
  switch (family) {
    case RandomFamily::kBert: return 2;
    case RandomFamily::kRoberta:
    case RandomFamily::kXlmRoberta: return 1;
    default: return 0;
  }
}

// The parts of a layer, as each family names them.
struct BertNames {
  std::string layer;
  std::vector<std::string> square;  // query, key, value, output
  std::string up, down;
  std::vector<std::string> norms;
};

BertNames NamesOf(RandomFamily family) {
  const std::string a = "attention.";
  if (family == RandomFamily::kMpnet) {
    return {"encoder.layer",
            {a + "attn.q", a + "attn.k", a + "attn.v", a + "attn.o"},
            "intermediate.dense",
            "output.dense",
            {a + "LayerNorm", "output.LayerNorm"}};
  }
  if (family == RandomFamily::kDistilBert) {
    return {"transformer.layer",
            {a + "q_lin", a + "k_lin", a + "v_lin", a + "out_lin"},
            "ffn.lin1",
            "ffn.lin2",
            {"sa_layer_norm", "output_layer_norm"}};
  }
  return {"encoder.layer",
          {a + "self.query", a + "self.key", a + "self.value", a + "output.dense"},
          "intermediate.dense",
          "output.dense",
          {a + "output.LayerNorm", "output.LayerNorm"}};
}

Shapes BertShapes(RandomFamily family) {
  const Sizes& s = kBertSizes;
  Shapes shapes;
  shapes["embeddings.word_embeddings.weight"] = {kVocabulary, s.hidden};
  shapes["embeddings.position_embeddings.weight"] = {kPositions, s.hidden};
  if (TokenTypes(family) > 0) {
    shapes["embeddings.token_type_embeddings.weight"] = {TokenTypes(family), s.hidden};
  }
  if (family == RandomFamily::kMpnet) {
    shapes["encoder.relative_attention_bias.weight"] = {kDistanceBuckets, s.heads};
  }
  AddLayerNorm("embeddings.LayerNorm", s.hidden, shapes);
  const BertNames names = NamesOf(family);
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = fmt::format("{}.{}.", names.layer, i);
    for (const std::string& part : names.square) {
      AddLinear(layer + part, s.hidden, s.hidden, true, shapes);
    }
    AddLinear(layer + names.up, s.intermediate, s.hidden, true, shapes);
    AddLinear(layer + names.down, s.hidden, s.intermediate, true, shapes);
    for (const std::string& part : names.norms) {
      AddLayerNorm(layer + part, s.hidden, shapes);
    }
  }
  return shapes;
}

Shapes Qwen3Shapes(bool attention_bias) {
  const Sizes& s = kQwen3Sizes;
  Shapes shapes;
  shapes["embed_tokens.weight"] = {kVocabulary, s.hidden};
  shapes["norm.weight"] = {s.hidden};
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    shapes[layer + "input_layernorm.weight"] = {s.hidden};
    shapes[layer + "post_attention_layernorm.weight"] = {s.hidden};
    shapes[layer + "self_attn.q_norm.weight"] = {s.head_dim};
    shapes[layer + "self_attn.k_norm.weight"] = {s.head_dim};
    const std::string attention = layer + "self_attn.";
    AddLinear(attention + "q_proj", s.heads * s.head_dim, s.hidden, attention_bias, shapes);
    AddLinear(attention + "k_proj", s.kv_heads * s.head_dim, s.hidden, attention_bias, shapes);
    AddLinear(attention + "v_proj", s.kv_heads * s.head_dim, s.hidden, attention_bias, shapes);
    AddLinear(attention + "o_proj", s.hidden, s.heads * s.head_dim, attention_bias, shapes);
    AddLinear(layer + "mlp.gate_proj", s.intermediate, s.hidden, false, shapes);
    AddLinear(layer + "mlp.up_proj", s.intermediate, s.hidden, false, shapes);
    AddLinear(layer + "mlp.down_proj", s.hidden, s.intermediate, false, shapes);
  }
  return shapes;
}

// What real files carry beside the network's own tensors.
void AddHarmlessExtras(const RandomModelOptions& options,
                       std::map<std::string, RandomTensor>& tensors) {
  if (!HasBertLayers(options.family)) {
    tensors["lm_head.weight"] =
        MakeTensor(options.seed, "embed_tokens.weight", {kVocabulary, kQwen3Sizes.hidden});
    return;
  }
  const int64_t hidden = kBertSizes.hidden;
  RandomTensor ids{{1, kPositions}, {}};
  for (int64_t i = 0; i < kPositions; ++i) {
    ids.values.push_back(static_cast<float>(i));
  }
  tensors["int64:" + options.prefix + "embeddings.position_ids"] = ids;
  if (options.family == RandomFamily::kDistilBert) {
    tensors["vocab_projector.bias"] =
        MakeTensor(options.seed, "vocab_projector.bias", {kVocabulary});
    return;
  }
  tensors[options.prefix + "pooler.dense.weight"] =
      MakeTensor(options.seed, "pooler.dense.weight", {hidden, hidden});
  tensors[options.prefix + "pooler.dense.bias"] =
      MakeTensor(options.seed, "pooler.dense.bias", {hidden});
  const std::string output_bias =
      options.family == RandomFamily::kBert ? "cls.predictions.bias" : "lm_head.bias";
  tensors[output_bias] = MakeTensor(options.seed, output_bias, {kVocabulary});
}

std::string BertConfigJson(RandomFamily family) {
  const Sizes& s = kBertSizes;
  const std::string tables =
      fmt::format(R"("vocab_size": {}, "max_position_embeddings": {})", kVocabulary, kPositions);
  if (family == RandomFamily::kDistilBert) {
    return fmt::format(
        R"({{"architectures": ["DistilBertModel"], "model_type": "distilbert", "activation": "gelu",
"n_layers": {}, "dim": {}, "n_heads": {}, "hidden_dim": {}, {}}})",
        s.layers, s.hidden, s.heads, s.intermediate, tables);
  }
  const std::map<RandomFamily, std::pair<std::string, std::string>> names = {
      {RandomFamily::kBert, {"BertModel", "bert"}},
      {RandomFamily::kRoberta, {"RobertaModel", "roberta"}},
      {RandomFamily::kXlmRoberta, {"XLMRobertaModel", "xlm-roberta"}},
      {RandomFamily::kMpnet, {"MPNetModel", "mpnet"}}};
  const auto& [class_name, model_type] = names.at(family);
  std::string own = R"("layer_norm_eps": 1e-12)";
  if (family != RandomFamily::kBert) {
    own = fmt::format(R"("layer_norm_eps": 1e-05, "pad_token_id": {})", kPaddingId);
  }
  own += family == RandomFamily::kMpnet
             ? fmt::format(R"(, "relative_attention_num_buckets": {})", kDistanceBuckets)
             : fmt::format(R"(, "type_vocab_size": {})", TokenTypes(family));
  return fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", {}, "hidden_act": "gelu",
"num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {},
{}}})",
      class_name, model_type, own, s.layers, s.hidden, s.heads, s.intermediate, tables);
}

std::string ConfigJson(const RandomModelOptions& options) {
  if (HasBertLayers(options.family)) {
    return BertConfigJson(options.family);
  }
  const Sizes& s = kQwen3Sizes;
  return fmt::format(
      R"({{"architectures": ["Qwen3Model"], "model_type": "qwen3", "hidden_act": "silu",
"num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": {},
"head_dim": {}, "intermediate_size": {}, "vocab_size": {}, "max_position_embeddings": {},
"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "attention_bias": {}, "is_causal": {},
"tie_word_embeddings": true}})",
      s.layers, s.hidden, s.heads, s.kv_heads, s.head_dim, s.intermediate, kVocabulary, kPositions,
      options.attention_bias, options.family == RandomFamily::kQwen3Causal);
}

int64_t HiddenSize(const RandomModelOptions& options) {
  return HasBertLayers(options.family) ? kBertSizes.hidden : kQwen3Sizes.hidden;
}

std::vector<std::string> PoolingModes(const RandomModelOptions& options) {
  if (!options.pooling_modes.empty()) {
    return options.pooling_modes;
  }
  switch (options.family) {
    case RandomFamily::kXlmRoberta: return {"cls"};
    case RandomFamily::kQwen3Causal: return {"lasttoken"};
    default: return {"mean"};
  }
}

void WriteDense(const fs::path& folder, const RandomModelOptions& options, int64_t in_features) {
  const int64_t out = options.dense_out_features;
  std::string activation;
  if (!options.dense_activation.empty()) {
    activation = fmt::format(", \"activation_function\": \"{}\"", options.dense_activation);
  }
  fs::create_directories(folder);
  WriteFile(
      folder / "config.json",
      fmt::format(R"({{"in_features": {}, "out_features": {}, "bias": {}{}, "use_residual": {}}})",
                  in_features, out, options.dense_bias, activation, options.dense_residual));
  Shapes shapes;
  AddLinear("linear", out, in_features, options.dense_bias, shapes);
  if (options.dense_residual && in_features != out) {
    AddLinear("residual", out, in_features, false, shapes);
  }
  std::map<std::string, RandomTensor> tensors;
  for (const auto& [name, shape] : shapes) {
    tensors[name] = MakeTensor(options.seed, "dense." + name, shape);
  }
  WriteSafetensors(folder / "model.safetensors", tensors, "F32");
}

void WriteModules(const fs::path& folder, const RandomModelOptions& options) {
  const std::vector<std::string> modes = PoolingModes(options);
  const std::string item =
      R"({{"idx": {0}, "name": "{0}", "path": "{1}", "type": "sentence_transformers.models.{2}"}})";
  std::vector<std::string> items = {fmt::format(fmt::runtime(item), 0, "", "Transformer"),
                                    fmt::format(fmt::runtime(item), 1, "1_Pooling", "Pooling")};
  fs::create_directories(folder / "1_Pooling");
  WriteFile(folder / "1_Pooling/config.json",
            fmt::format(
                R"({{"embedding_dimension": {}, "pooling_mode": ["{}"], "include_prompt": true}})",
                HiddenSize(options), fmt::join(modes, "\", \"")));
  if (options.dense_out_features > 0) {
    items.push_back(fmt::format(fmt::runtime(item), 2, "2_Dense", "Dense"));
    WriteDense(folder / "2_Dense", options,
               HiddenSize(options) * static_cast<int64_t>(modes.size()));
  }
  if (options.normalize) {
    const std::string path = fmt::format("{}_Normalize", items.size());
    items.push_back(fmt::format(fmt::runtime(item), items.size(), path, "Normalize"));
  }
  WriteFile(folder / "modules.json", fmt::format("[{}]", fmt::join(items, ",\n ")));
}

void WriteShards(const fs::path& folder, const RandomModelOptions& options,
                 const std::map<std::string, RandomTensor>& tensors) {
  std::vector<std::map<std::string, RandomTensor>> shards(static_cast<size_t>(options.shards));
  std::vector<std::string> entries;
  size_t next = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t shard = next++ % shards.size();
    shards[shard][name] = tensor;
    const std::string stored = name.starts_with("int64:") ? name.substr(6) : name;
    entries.push_back(fmt::format(R"("{}": "model-{:05}-of-{:05}.safetensors")", stored, shard + 1,
                                  shards.size()));
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    WriteSafetensors(folder / fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size()),
                     shards[i], options.dtype);
  }
  WriteFile(
      folder / "model.safetensors.index.json",
      fmt::format(R"({{"metadata": {{}}, "weight_map": {{{}}}}})", fmt::join(entries, ",\n")));
}

template <class T>
void AppendBytes(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Exact: the values have at most 8 significant bits and lie in float16's normal range, or are 0.
uint16_t HalfBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  if (value == 0) {
    return sign;
  }
  const uint32_t exponent = ((bits >> 23) & 0xffU) - 127 + 15;
  return static_cast<uint16_t>(sign | (exponent << 10) | ((bits >> 13) & 0x3ffU));
}

void AppendValue(float value, const std::string& dtype, std::string& out) {
  if (dtype == "I64") {
    AppendBytes(static_cast<int64_t>(value), out);
  } else if (dtype == "F16") {
    AppendBytes(HalfBits(value), out);
  } else if (dtype == "BF16") {
    AppendBytes(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16), out);
  } else {
    AppendBytes(value, out);
  }
}

}  // namespace

std::map<std::string, RandomTensor> RandomTensors(const RandomModelOptions& options) {
  const Shapes shapes = HasBertLayers(options.family) ? BertShapes(options.family)
                                                      : Qwen3Shapes(options.attention_bias);
  std::map<std::string, RandomTensor> tensors;
  for (const auto& [name, shape] : shapes) {
    tensors[options.prefix + name] = MakeTensor(options.seed, name, shape);
  }
  if (options.harmless_extras) {
    AddHarmlessExtras(options, tensors);
  }
  return tensors;
}

void WriteRandomModel(const fs::path& folder, const RandomModelOptions& options) {
  fs::create_directories(folder);
  WriteFile(folder / "config.json", ConfigJson(options));
  WriteModules(folder, options);
  const std::map<std::string, RandomTensor> tensors = RandomTensors(options);
  if (options.shards > 1) {
    WriteShards(folder, options, tensors);
  } else {
    WriteSafetensors(folder / "model.safetensors", tensors, options.dtype);
  }
}

void WriteSafetensors(const fs::path& path, const std::map<std::string, RandomTensor>& tensors,
                      const std::string& dtype) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const bool is_int64 = name.starts_with("int64:");
    const std::string stored = is_int64 ? name.substr(6) : name;
    const std::string own_dtype = is_int64 ? "I64" : dtype;
    const size_t begin = data.size();
    for (const float value : tensor.values) {
      AppendValue(value, own_dtype, data);
    }
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", stored,
                          own_dtype, fmt::join(tensor.shape, ","), begin, data.size());
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file;
  AppendBytes(static_cast<uint64_t>(header.size()), file);
  WriteFile(path, file + header + data);
}

void WriteFile(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace bouquet::testing
