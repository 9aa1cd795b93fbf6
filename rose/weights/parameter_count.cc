#include "rose/weights/parameter_count.h"

#include <fmt/format.h>

#include <string_view>

namespace bouquet::rose {
namespace {

using model::Architecture;
using model::Traits;

ParameterCount BertParameters(const Traits& t) {
  const int64_t h = t.hidden_size;
  const int64_t i = t.intermediate_size;
  ParameterCount count;
  count.embeddings = (int64_t{t.vocabulary_rows} + t.position_rows + t.token_types) * h + 2 * h +
                     int64_t{t.relative_attention_buckets} * t.num_attention_heads;
  count.layers = t.num_hidden_layers * (4 * (h * h + h) + 4 * h + 2 * h * i + i + h);
  return count;
}

ParameterCount Qwen3Parameters(const Traits& t) {
  const int64_t h = t.hidden_size;
  const int64_t queries = int64_t{t.num_attention_heads} * t.head_dim;
  const int64_t keys = int64_t{t.num_key_value_heads} * t.head_dim;
  int64_t layer = 2 * h * queries + 2 * h * keys + 2 * int64_t{t.head_dim} +
                  3 * h * t.intermediate_size + 2 * h;
  if (t.attention_bias) {
    layer += queries + 2 * keys + h;
  }
  ParameterCount count;
  count.embeddings = t.vocabulary_rows * h;
  count.layers = t.num_hidden_layers * layer;
  count.final_norm = h;
  return count;
}

std::string_view LayerPrefix(Architecture architecture) {
  switch (architecture) {
    case Architecture::kBert:
    case Architecture::kRoberta:
    case Architecture::kMpnet: return "encoder.layer.";
    case Architecture::kDistilBert: return "transformer.layer.";
    case Architecture::kQwen3: return "layers.";
  }
  return {};
}

Status Compare(std::string_view group, int64_t expected, int64_t found) {
  if (expected == found) {
    return {};
  }
  return Internal(
      fmt::format("the network took another number of parameters than its family has: "
                  "{}: expected {}, found {}",
                  group, expected, found));
}

}  // namespace

ParameterCount ExpectedParameters(const Traits& traits) {
  switch (traits.architecture) {
    case Architecture::kBert:
    case Architecture::kRoberta:
    case Architecture::kMpnet:
    case Architecture::kDistilBert: return BertParameters(traits);
    case Architecture::kQwen3: return Qwen3Parameters(traits);
  }
  return {};
}

ParameterCount TakenParameters(Architecture architecture, const WeightSet& weights) {
  const std::string_view layer_prefix = LayerPrefix(architecture);
  const auto in_layer = [&](std::string_view name) { return name.starts_with(layer_prefix); };
  const auto in_final_norm = [](std::string_view name) { return name.starts_with("norm."); };
  ParameterCount count;
  count.layers = weights.CountTaken(in_layer);
  count.final_norm = weights.CountTaken(in_final_norm);
  count.embeddings = weights.CountTaken(
      [&](std::string_view name) { return !in_layer(name) && !in_final_norm(name); });
  return count;
}

Status CheckParameterCount(const Traits& traits, const WeightSet& weights) {
  const ParameterCount expected = ExpectedParameters(traits);
  const ParameterCount taken = TakenParameters(traits.architecture, weights);
  RETURN_IF_ERROR(Compare("embeddings", expected.embeddings, taken.embeddings));
  RETURN_IF_ERROR(Compare("layers", expected.layers, taken.layers));
  return Compare("final norm", expected.final_norm, taken.final_norm);
}

}  // namespace bouquet::rose
