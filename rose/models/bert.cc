#include "rose/models/bert.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "rose/layers/activations.h"
#include "rose/layers/attention.h"
#include "rose/layers/linear.h"
#include "rose/layers/mlp.h"
#include "rose/layers/norm.h"
#include "rose/layers/relative_bias.h"

namespace bouquet::rose {
namespace {

using model::Architecture;
using model::Traits;

const NormDesc kNoNormBefore{NormKind::kNone, {}};

struct Embeddings {
  Tensor word;        // [vocabulary_rows, hidden_size]
  Tensor position;    // [position_rows, hidden_size]
  Tensor token_type;  // [token_types, hidden_size], or empty
  int32_t position_offset = 0;
  Norm norm;

  EmbeddingDesc desc() const {
    return {.word = word.view(),
            .position = position.view(),
            .token_type = token_type.view(),
            .position_offset = position_offset,
            .norm_kind = norm.kind,
            .norm = norm.weights()};
  }
};

struct Layer {
  SelfAttention attention;
  Norm attention_norm;
  Mlp mlp;
  Norm mlp_norm;
};

class Bert final : public Model {
 public:
  TensorView Forward(const StepInputs& inputs, Backend& backend) override {
    const Activations step = arena.ForStep(inputs.num_tokens);
    const TensorView x = step.hidden;
    backend.Embed(embeddings.desc(), inputs, x);
    for (const Layer& layer : layers) {
      layer.attention.AddTo(step, inputs, kNoNormBefore, backend);
      backend.Norm(layer.attention_norm.desc(), x, {}, {}, x);
      layer.mlp.AddTo(step, kNoNormBefore, backend);
      backend.Norm(layer.mlp_norm.desc(), x, {}, {}, x);
    }
    return x;
  }

  Embeddings embeddings;
  Tensor relative_bias;  // RelativeBias::table, or empty
  std::vector<Layer> layers;
  ActivationArena arena;
};

// How a family names the parts of a layer.
struct LayerNames {
  std::string_view layer;  // in front of the layer's number
  std::string_view query, key, value, attention_output, attention_norm;
  std::string_view mlp_up, mlp_down, mlp_norm;
};

constexpr LayerNames kBertNames = {.layer = "encoder.layer",
                                   .query = "attention.self.query",
                                   .key = "attention.self.key",
                                   .value = "attention.self.value",
                                   .attention_output = "attention.output.dense",
                                   .attention_norm = "attention.output.LayerNorm",
                                   .mlp_up = "intermediate.dense",
                                   .mlp_down = "output.dense",
                                   .mlp_norm = "output.LayerNorm"};
constexpr LayerNames kMpnetNames = {.layer = "encoder.layer",
                                    .query = "attention.attn.q",
                                    .key = "attention.attn.k",
                                    .value = "attention.attn.v",
                                    .attention_output = "attention.attn.o",
                                    .attention_norm = "attention.LayerNorm",
                                    .mlp_up = "intermediate.dense",
                                    .mlp_down = "output.dense",
                                    .mlp_norm = "output.LayerNorm"};
constexpr LayerNames kDistilBertNames = {.layer = "transformer.layer",
                                         .query = "attention.q_lin",
                                         .key = "attention.k_lin",
                                         .value = "attention.v_lin",
                                         .attention_output = "attention.out_lin",
                                         .attention_norm = "sa_layer_norm",
                                         .mlp_up = "ffn.lin1",
                                         .mlp_down = "ffn.lin2",
                                         .mlp_norm = "output_layer_norm"};

const LayerNames& NamesOf(Architecture architecture) {
  switch (architecture) {
    case Architecture::kMpnet: return kMpnetNames;
    case Architecture::kDistilBert: return kDistilBertNames;
    default: return kBertNames;
  }
}

/// Takes the tensors of one layer by its family's names.
struct LayerSource {
  const Traits& traits;
  const LayerNames& names;
  std::string prefix;  // "encoder.layer.0."
  WeightSet& weights;
  Backend& backend;

  Status AddTo(LinearSources& sources, std::string_view part, int64_t out_features,
               int64_t in_features) const {
    return sources.Add(weights, NameOf(part), out_features, in_features, true);
  }
  Result<Norm> LoadNorm(std::string_view part) const {
    return Norm::LoadLayerNorm(weights, NameOf(part), traits.hidden_size, traits.norm_epsilon,
                               backend);
  }
  std::string NameOf(std::string_view part) const { return prefix + std::string(part); }
};

Activation ActivationOf(const Traits& traits) {
  if (traits.hidden_act == "gelu") {
    return Activation::kGelu;
  }
  return traits.hidden_act == "relu" ? Activation::kRelu : Activation::kGeluTanh;
}

Result<Tensor> LoadTable(WeightSet& weights, const std::string& name, int64_t rows, int64_t cols,
                         Backend& backend) {
  ASSIGN_OR_RETURN(const HostTensor table, weights.TakeMatrix(name, rows, cols));
  return backend.Upload(table, backend.compute_dtype());
}

Result<Embeddings> LoadEmbeddings(const Traits& traits, WeightSet& weights, Backend& backend) {
  const int64_t hidden = traits.hidden_size;
  Embeddings embeddings;
  ASSIGN_OR_RETURN(embeddings.word, LoadTable(weights, "embeddings.word_embeddings.weight",
                                              traits.vocabulary_rows, hidden, backend));
  ASSIGN_OR_RETURN(embeddings.position, LoadTable(weights, "embeddings.position_embeddings.weight",
                                                  traits.position_rows, hidden, backend));
  embeddings.position_offset = traits.position_offset;
  if (traits.token_types > 0) {
    ASSIGN_OR_RETURN(embeddings.token_type,
                     LoadTable(weights, "embeddings.token_type_embeddings.weight",
                               traits.token_types, hidden, backend));
  }
  ASSIGN_OR_RETURN(embeddings.norm, Norm::LoadLayerNorm(weights, "embeddings.LayerNorm", hidden,
                                                        traits.norm_epsilon, backend));
  return embeddings;
}

Result<SelfAttention> LoadAttention(const LayerSource& source, const RelativeBias& bias) {
  const Traits& traits = source.traits;
  const int64_t hidden = traits.hidden_size;
  SelfAttention attention;
  LinearSources qkv;
  RETURN_IF_ERROR(source.AddTo(qkv, source.names.query, hidden, hidden));
  RETURN_IF_ERROR(source.AddTo(qkv, source.names.key, hidden, hidden));
  RETURN_IF_ERROR(source.AddTo(qkv, source.names.value, hidden, hidden));
  ASSIGN_OR_RETURN(attention.qkv, qkv.Pack(source.backend));
  LinearSources output;
  RETURN_IF_ERROR(source.AddTo(output, source.names.attention_output, hidden, hidden));
  ASSIGN_OR_RETURN(attention.output, output.Pack(source.backend));
  attention.desc.num_heads = traits.num_attention_heads;
  attention.desc.num_kv_heads = traits.num_attention_heads;
  attention.desc.head_dim = traits.head_dim;
  attention.desc.scale = 1.0F / std::sqrt(static_cast<float>(traits.head_dim));
  attention.desc.mask = AttentionMask::kBidirectional;
  attention.desc.relative_bias = bias;
  return attention;
}

Result<Mlp> LoadMlp(const LayerSource& source) {
  const Traits& traits = source.traits;
  Mlp mlp;
  LinearSources up;
  RETURN_IF_ERROR(
      source.AddTo(up, source.names.mlp_up, traits.intermediate_size, traits.hidden_size));
  up.desc().activation = ActivationOf(traits);
  ASSIGN_OR_RETURN(mlp.up, up.Pack(source.backend));
  LinearSources down;
  RETURN_IF_ERROR(
      source.AddTo(down, source.names.mlp_down, traits.hidden_size, traits.intermediate_size));
  ASSIGN_OR_RETURN(mlp.down, down.Pack(source.backend));
  return mlp;
}

Result<Layer> LoadLayer(const LayerSource& source, const RelativeBias& bias) {
  Layer layer;
  ASSIGN_OR_RETURN(layer.attention, LoadAttention(source, bias));
  ASSIGN_OR_RETURN(layer.attention_norm, source.LoadNorm(source.names.attention_norm));
  ASSIGN_OR_RETURN(layer.mlp, LoadMlp(source));
  ASSIGN_OR_RETURN(layer.mlp_norm, source.LoadNorm(source.names.mlp_norm));
  return layer;
}

Result<Tensor> LoadRelativeBias(const Traits& traits, WeightSet& weights, Backend& backend) {
  if (traits.relative_attention_buckets == 0) {
    return Tensor();
  }
  ASSIGN_OR_RETURN(
      const HostTensor buckets,
      weights.TakeMatrix("encoder.relative_attention_bias.weight",
                         traits.relative_attention_buckets, traits.num_attention_heads));
  return ExpandRelativeBias(buckets, backend);
}

}  // namespace

Result<std::unique_ptr<Model>> LoadBert(const Traits& traits, WeightSet& weights,
                                        int32_t max_tokens, Backend& backend) {
  auto bert = std::make_unique<Bert>();
  ASSIGN_OR_RETURN(bert->embeddings, LoadEmbeddings(traits, weights, backend));
  ASSIGN_OR_RETURN(bert->relative_bias, LoadRelativeBias(traits, weights, backend));
  const LayerNames& names = NamesOf(traits.architecture);
  for (int32_t i = 0; i < traits.num_hidden_layers; ++i) {
    const LayerSource source{traits, names, fmt::format("{}.{}.", names.layer, i), weights,
                             backend};
    ASSIGN_OR_RETURN(Layer layer, LoadLayer(source, {bert->relative_bias.view()}));
    bert->layers.push_back(std::move(layer));
  }
  const int64_t hidden = traits.hidden_size;
  ASSIGN_OR_RETURN(bert->arena,
                   ActivationArena::Allocate({.hidden = hidden,
                                              .qkv = 3 * hidden,
                                              .context = hidden,
                                              .intermediate = traits.intermediate_size},
                                             max_tokens, backend));
  return std::unique_ptr<Model>(std::move(bert));
}

}  // namespace bouquet::rose
