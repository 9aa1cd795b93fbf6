#include "rose/models/bert.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "rose/layers/activations.h"
#include "rose/layers/attention.h"
#include "rose/layers/linear.h"
#include "rose/layers/mlp.h"
#include "rose/layers/norm.h"

namespace bouquet::rose {
namespace {

using model::Traits;

const NormDesc kNoNormBefore{NormKind::kNone, {}};

struct Embeddings {
  Tensor word;        // [vocabulary_rows, hidden_size]
  Tensor position;    // [position_rows, hidden_size]
  Tensor token_type;  // [token_types, hidden_size]
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
  std::vector<Layer> layers;
  ActivationArena arena;
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
  ASSIGN_OR_RETURN(embeddings.token_type,
                   LoadTable(weights, "embeddings.token_type_embeddings.weight", traits.token_types,
                             hidden, backend));
  ASSIGN_OR_RETURN(embeddings.norm, Norm::LoadLayerNorm(weights, "embeddings.LayerNorm", hidden,
                                                        traits.norm_epsilon, backend));
  return embeddings;
}

Result<SelfAttention> LoadAttention(const Traits& traits, const std::string& layer,
                                    WeightSet& weights, Backend& backend) {
  const int64_t hidden = traits.hidden_size;
  SelfAttention attention;
  LinearSources qkv;
  RETURN_IF_ERROR(qkv.Add(weights, layer + "attention.self.query", hidden, hidden, true));
  RETURN_IF_ERROR(qkv.Add(weights, layer + "attention.self.key", hidden, hidden, true));
  RETURN_IF_ERROR(qkv.Add(weights, layer + "attention.self.value", hidden, hidden, true));
  ASSIGN_OR_RETURN(attention.qkv, qkv.Pack(backend));
  LinearSources output;
  RETURN_IF_ERROR(output.Add(weights, layer + "attention.output.dense", hidden, hidden, true));
  ASSIGN_OR_RETURN(attention.output, output.Pack(backend));
  attention.desc.num_heads = traits.num_attention_heads;
  attention.desc.num_kv_heads = traits.num_attention_heads;
  attention.desc.head_dim = traits.head_dim;
  attention.desc.scale = 1.0F / std::sqrt(static_cast<float>(traits.head_dim));
  attention.desc.mask = AttentionMask::kBidirectional;
  return attention;
}

Result<Mlp> LoadMlp(const Traits& traits, const std::string& layer, WeightSet& weights,
                    Backend& backend) {
  Mlp mlp;
  LinearSources up;
  RETURN_IF_ERROR(up.Add(weights, layer + "intermediate.dense", traits.intermediate_size,
                         traits.hidden_size, true));
  up.desc().activation = ActivationOf(traits);
  ASSIGN_OR_RETURN(mlp.up, up.Pack(backend));
  LinearSources down;
  RETURN_IF_ERROR(down.Add(weights, layer + "output.dense", traits.hidden_size,
                           traits.intermediate_size, true));
  ASSIGN_OR_RETURN(mlp.down, down.Pack(backend));
  return mlp;
}

Result<Layer> LoadLayer(const Traits& traits, int32_t index, WeightSet& weights, Backend& backend) {
  const std::string name = fmt::format("encoder.layer.{}.", index);
  Layer layer;
  ASSIGN_OR_RETURN(layer.attention, LoadAttention(traits, name, weights, backend));
  ASSIGN_OR_RETURN(layer.attention_norm,
                   Norm::LoadLayerNorm(weights, name + "attention.output.LayerNorm",
                                       traits.hidden_size, traits.norm_epsilon, backend));
  ASSIGN_OR_RETURN(layer.mlp, LoadMlp(traits, name, weights, backend));
  ASSIGN_OR_RETURN(layer.mlp_norm,
                   Norm::LoadLayerNorm(weights, name + "output.LayerNorm", traits.hidden_size,
                                       traits.norm_epsilon, backend));
  return layer;
}

}  // namespace

Result<std::unique_ptr<Model>> LoadBert(const Traits& traits, WeightSet& weights,
                                        int32_t max_tokens, Backend& backend) {
  auto bert = std::make_unique<Bert>();
  ASSIGN_OR_RETURN(bert->embeddings, LoadEmbeddings(traits, weights, backend));
  for (int32_t i = 0; i < traits.num_hidden_layers; ++i) {
    ASSIGN_OR_RETURN(Layer layer, LoadLayer(traits, i, weights, backend));
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
