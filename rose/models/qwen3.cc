#include "rose/models/qwen3.h"

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

struct Layer {
  Norm attention_norm;
  Norm query_norm;  // per head
  Norm key_norm;    // per head
  SelfAttention attention;
  Norm mlp_norm;
  Mlp mlp;
};

class Qwen3 final : public Model {
 public:
  TensorView Forward(const StepInputs& inputs, Backend& backend) override {
    const Activations step = arena.ForStep(inputs.num_tokens);
    const TensorView x = step.hidden;
    backend.Embed({.word = word_embedding.view()}, inputs, x);
    for (const Layer& layer : layers) {
      layer.attention.AddTo(step, inputs, layer.attention_norm.desc(), backend);
      layer.mlp.AddTo(step, layer.mlp_norm.desc(), backend);
    }
    backend.Norm(final_norm.desc(), x, {}, {}, x);
    return x;
  }

  Tensor word_embedding;  // [vocabulary_rows, hidden_size]
  std::vector<Layer> layers;
  Norm final_norm;
  ActivationArena arena;
};

int64_t QueryWidth(const Traits& traits) {
  return int64_t{traits.num_attention_heads} * traits.head_dim;
}
int64_t KeyWidth(const Traits& traits) {
  return int64_t{traits.num_key_value_heads} * traits.head_dim;
}

Status LoadAttention(const Traits& traits, const std::string& name, WeightSet& weights,
                     Backend& backend, Layer& layer) {
  const int64_t hidden = traits.hidden_size;
  const bool bias = traits.attention_bias;
  ASSIGN_OR_RETURN(layer.query_norm, Norm::LoadRmsNorm(weights, name + "q_norm", traits.head_dim,
                                                       traits.norm_epsilon, backend));
  ASSIGN_OR_RETURN(layer.key_norm, Norm::LoadRmsNorm(weights, name + "k_norm", traits.head_dim,
                                                     traits.norm_epsilon, backend));
  LinearSources qkv;
  RETURN_IF_ERROR(qkv.Add(weights, name + "q_proj", QueryWidth(traits), hidden, bias));
  RETURN_IF_ERROR(qkv.Add(weights, name + "k_proj", KeyWidth(traits), hidden, bias));
  RETURN_IF_ERROR(qkv.Add(weights, name + "v_proj", KeyWidth(traits), hidden, bias));
  ASSIGN_OR_RETURN(layer.attention.qkv, qkv.Pack(backend));
  LinearSources output;
  RETURN_IF_ERROR(output.Add(weights, name + "o_proj", hidden, QueryWidth(traits), bias));
  ASSIGN_OR_RETURN(layer.attention.output, output.Pack(backend));
  AttentionDesc& desc = layer.attention.desc;
  desc.num_heads = traits.num_attention_heads;
  desc.num_kv_heads = traits.num_key_value_heads;
  desc.head_dim = traits.head_dim;
  desc.scale = 1.0F / std::sqrt(static_cast<float>(traits.head_dim));
  desc.mask = traits.causal ? AttentionMask::kCausal : AttentionMask::kBidirectional;
  desc.query_norm = layer.query_norm.weights();
  desc.key_norm = layer.key_norm.weights();
  desc.rope = {.enabled = true, .theta = traits.rope_theta};
  return {};
}

Result<Mlp> LoadMlp(const Traits& traits, const std::string& name, WeightSet& weights,
                    Backend& backend) {
  const int64_t hidden = traits.hidden_size;
  const int64_t intermediate = traits.intermediate_size;
  Mlp mlp;
  LinearSources up;
  RETURN_IF_ERROR(up.Add(weights, name + "gate_proj", intermediate, hidden, false));
  RETURN_IF_ERROR(up.Add(weights, name + "up_proj", intermediate, hidden, false));
  up.desc().gated = true;
  up.desc().activation = Activation::kSilu;
  ASSIGN_OR_RETURN(mlp.up, up.Pack(backend));
  LinearSources down;
  RETURN_IF_ERROR(down.Add(weights, name + "down_proj", hidden, intermediate, false));
  ASSIGN_OR_RETURN(mlp.down, down.Pack(backend));
  return mlp;
}

Result<Layer> LoadLayer(const Traits& traits, int32_t index, WeightSet& weights, Backend& backend) {
  const std::string name = fmt::format("layers.{}.", index);
  Layer layer;
  ASSIGN_OR_RETURN(layer.attention_norm,
                   Norm::LoadRmsNorm(weights, name + "input_layernorm", traits.hidden_size,
                                     traits.norm_epsilon, backend));
  RETURN_IF_ERROR(LoadAttention(traits, name + "self_attn.", weights, backend, layer));
  ASSIGN_OR_RETURN(layer.mlp_norm,
                   Norm::LoadRmsNorm(weights, name + "post_attention_layernorm", traits.hidden_size,
                                     traits.norm_epsilon, backend));
  ASSIGN_OR_RETURN(layer.mlp, LoadMlp(traits, name + "mlp.", weights, backend));
  return layer;
}

}  // namespace

Result<std::unique_ptr<Model>> LoadQwen3(const Traits& traits, WeightSet& weights,
                                         int32_t max_tokens, Backend& backend) {
  auto qwen = std::make_unique<Qwen3>();
  ASSIGN_OR_RETURN(
      const HostTensor table,
      weights.TakeMatrix("embed_tokens.weight", traits.vocabulary_rows, traits.hidden_size));
  ASSIGN_OR_RETURN(qwen->word_embedding, backend.Upload(table, backend.compute_dtype()));
  for (int32_t i = 0; i < traits.num_hidden_layers; ++i) {
    ASSIGN_OR_RETURN(Layer layer, LoadLayer(traits, i, weights, backend));
    qwen->layers.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(qwen->final_norm, Norm::LoadRmsNorm(weights, "norm", traits.hidden_size,
                                                       traits.norm_epsilon, backend));
  ASSIGN_OR_RETURN(qwen->arena,
                   ActivationArena::Allocate({.hidden = traits.hidden_size,
                                              .qkv = QueryWidth(traits) + 2 * KeyWidth(traits),
                                              .context = QueryWidth(traits),
                                              .intermediate = traits.intermediate_size},
                                             max_tokens, backend));
  return std::unique_ptr<Model>(std::move(qwen));
}

}  // namespace bouquet::rose
