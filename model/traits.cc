#include "model/traits.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <span>

namespace bouquet::model {
namespace {

// Above every published model, below what could overflow a product of two of them.
constexpr int64_t kMaxLayers = 1000;
constexpr int64_t kMaxWidth = 1 << 18;
constexpr int64_t kMaxRows = 1 << 24;

constexpr std::string_view kPplxModelType = "bidirectional_pplx_qwen3";
constexpr std::string_view kPplxClass = "PPLXQwen3Model";

Result<std::string> ClassName(const JsonObject& config) {
  const auto element = config.Element("architectures");
  simdjson::dom::array names;
  if (!element) {
    return std::string();
  }
  if (element->get_array().get(names) != simdjson::SUCCESS) {
    return InvalidArgument(
        fmt::format("{}: \"architectures\" must be an array of names", config.where()),
        "architectures");
  }
  std::string_view name;
  if (names.size() != 0 && names.at(0).get_string().get(name) != simdjson::SUCCESS) {
    return InvalidArgument(
        fmt::format("{}: \"architectures\" must be an array of names", config.where()),
        "architectures");
  }
  return std::string(name);
}

Result<int32_t> Size(const JsonObject& config, std::string_view key, int64_t maximum) {
  ASSIGN_OR_RETURN(const int64_t value, config.RequiredInteger(key, 1, maximum));
  return static_cast<int32_t>(value);
}

Result<int32_t> SizeOr(const JsonObject& config, std::string_view key, int64_t maximum,
                       int32_t otherwise) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, config.Integer(key, 1, maximum));
  return value ? static_cast<int32_t>(*value) : otherwise;
}

Result<float> PositiveOr(const JsonObject& config, std::string_view key, double otherwise) {
  ASSIGN_OR_RETURN(const std::optional<double> value, config.Number(key));
  const double number = value.value_or(otherwise);
  if (!std::isfinite(number) || number <= 0) {
    return InvalidArgument(
        fmt::format("{}: \"{}\" must be a positive number, not {}", config.where(), key, number),
        std::string(key));
  }
  return static_cast<float>(number);
}

Status Unserved(const JsonObject& config, std::string_view key, std::string_view value,
                std::string_view served) {
  return Unimplemented(
      fmt::format("{}: \"{}\" {} is not served, only {}", config.where(), key, value, served),
      std::string(key));
}

// What families name differently.
struct Keys {
  std::string_view layers = "num_hidden_layers";
  std::string_view hidden = "hidden_size";
  std::string_view heads = "num_attention_heads";
  std::string_view intermediate = "intermediate_size";
  std::string_view activation = "hidden_act";
};
constexpr Keys kKeys;
constexpr Keys kDistilBertKeys = {"n_layers", "dim", "n_heads", "hidden_dim", "activation"};

Status ReadSharedSizes(const JsonObject& config, const Keys& keys, Traits& traits) {
  ASSIGN_OR_RETURN(traits.num_hidden_layers, Size(config, keys.layers, kMaxLayers));
  ASSIGN_OR_RETURN(traits.hidden_size, Size(config, keys.hidden, kMaxWidth));
  ASSIGN_OR_RETURN(traits.num_attention_heads, Size(config, keys.heads, kMaxWidth));
  ASSIGN_OR_RETURN(traits.intermediate_size, Size(config, keys.intermediate, kMaxWidth));
  ASSIGN_OR_RETURN(traits.vocabulary_rows, Size(config, "vocab_size", kMaxRows));
  ASSIGN_OR_RETURN(traits.max_positions, Size(config, "max_position_embeddings", kMaxRows));
  ASSIGN_OR_RETURN(const std::optional<std::string> dtype, config.String("dtype"));
  ASSIGN_OR_RETURN(const std::optional<std::string> torch_dtype, config.String("torch_dtype"));
  traits.torch_dtype = dtype.value_or(torch_dtype.value_or(""));
  return {};
}

Status ReadActivation(const JsonObject& config, std::string_view key, Traits& traits,
                      std::string_view otherwise, std::span<const std::string_view> served,
                      std::string_view served_text) {
  ASSIGN_OR_RETURN(const std::optional<std::string> act, config.String(key));
  traits.hidden_act = act.value_or(std::string(otherwise));
  for (const std::string_view name : served) {
    if (traits.hidden_act == name) {
      return {};
    }
  }
  return Unserved(config, key, traits.hidden_act, served_text);
}

Status RefuseFlag(const JsonObject& config, std::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<bool> flag, config.Bool(key));
  return flag.value_or(false) ? Unserved(config, key, "true", "false") : Status();
}

// What BERT and all its kin have.
Status ReadEncoder(const JsonObject& config, const Keys& keys, Traits& traits) {
  RETURN_IF_ERROR(ReadSharedSizes(config, keys, traits));
  traits.position_rows = traits.max_positions;
  if (traits.hidden_size % traits.num_attention_heads != 0) {
    return InvalidArgument(
        fmt::format("{}: \"{}\" must be a multiple of \"{}\": {} and {}", config.where(),
                    keys.hidden, keys.heads, traits.hidden_size, traits.num_attention_heads),
        std::string(keys.hidden));
  }
  traits.num_key_value_heads = traits.num_attention_heads;
  traits.head_dim = traits.hidden_size / traits.num_attention_heads;
  constexpr std::array<std::string_view, 4> kServed = {"gelu", "gelu_new", "gelu_pytorch_tanh",
                                                       "relu"};
  RETURN_IF_ERROR(ReadActivation(config, keys.activation, traits, "gelu", kServed,
                                 "gelu, gelu_new, gelu_pytorch_tanh, relu"));
  RETURN_IF_ERROR(RefuseFlag(config, "is_decoder"));
  RETURN_IF_ERROR(RefuseFlag(config, "add_cross_attention"));
  ASSIGN_OR_RETURN(const std::optional<std::string> positions,
                   config.String("position_embedding_type"));
  if (positions.value_or("absolute") != "absolute") {
    return Unserved(config, "position_embedding_type", *positions, "absolute");
  }
  return {};
}

Status ReadBert(const JsonObject& config, Traits& traits) {
  traits.architecture = Architecture::kBert;
  RETURN_IF_ERROR(ReadEncoder(config, kKeys, traits));
  ASSIGN_OR_RETURN(traits.token_types, SizeOr(config, "type_vocab_size", kMaxWidth, 2));
  ASSIGN_OR_RETURN(traits.norm_epsilon, PositiveOr(config, "layer_norm_eps", 1e-12));
  return {};
}

// Positions are numbered from the row behind the padding token's, as fairseq did; the rows up to it
// stand for no position.
Status StartPositionsBehind(const JsonObject& config, int64_t padding, Traits& traits) {
  traits.position_offset = static_cast<int32_t>(padding) + 1;
  traits.max_positions = traits.position_rows - traits.position_offset;
  if (traits.max_positions < 1) {
    return InvalidArgument(
        fmt::format("{}: \"max_position_embeddings\" must be above the row where positions "
                    "start, one behind the padding token's: {} and {}",
                    config.where(), traits.position_rows, traits.position_offset),
        "max_position_embeddings");
  }
  return {};
}

Status ReadRoberta(const JsonObject& config, Traits& traits) {
  RETURN_IF_ERROR(ReadBert(config, traits));
  traits.architecture = Architecture::kRoberta;
  constexpr int64_t kDefaultPadding = 1;  // of the reference library when the file states none
  ASSIGN_OR_RETURN(const std::optional<int64_t> padding,
                   config.Integer("pad_token_id", 0, traits.vocabulary_rows - 1));
  return StartPositionsBehind(config, padding.value_or(kDefaultPadding), traits);
}

Status ReadMpnet(const JsonObject& config, Traits& traits) {
  traits.architecture = Architecture::kMpnet;
  RETURN_IF_ERROR(ReadEncoder(config, kKeys, traits));
  ASSIGN_OR_RETURN(traits.norm_epsilon, PositiveOr(config, "layer_norm_eps", 1e-12));
  constexpr int64_t kBuckets = 32;  // by which the reference library numbers them in any case
  ASSIGN_OR_RETURN(const std::optional<int64_t> buckets,
                   config.Integer("relative_attention_num_buckets", 1, kMaxWidth));
  if (buckets.value_or(kBuckets) != kBuckets) {
    return Unserved(config, "relative_attention_num_buckets", fmt::to_string(*buckets), "32");
  }
  traits.relative_attention_buckets = kBuckets;
  constexpr int64_t kPadding = 1;  // whatever "pad_token_id" says, as in the reference library
  return StartPositionsBehind(config, kPadding, traits);
}

Status ReadDistilBert(const JsonObject& config, Traits& traits) {
  traits.architecture = Architecture::kDistilBert;
  RETURN_IF_ERROR(ReadEncoder(config, kDistilBertKeys, traits));
  traits.norm_epsilon = 1e-12F;  // no key states it
  return {};
}

// Both spellings: `rope_theta` beside the sizes (older), or `rope_parameters` {rope_theta,
// rope_type} (newer). A scaled rotary embedding changes every vector, so it is refused, not
// ignored.
Status ReadRope(const JsonObject& config, Traits& traits) {
  constexpr double kDefaultTheta = 10000;  // of the reference library when the file states none
  ASSIGN_OR_RETURN(traits.rope_theta, PositiveOr(config, "rope_theta", kDefaultTheta));
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    ASSIGN_OR_RETURN(const std::optional<JsonObject> rope, config.Object(key));
    if (!rope) {
      continue;
    }
    ASSIGN_OR_RETURN(const std::optional<std::string> type, rope->String("rope_type"));
    ASSIGN_OR_RETURN(const std::optional<std::string> old_type, rope->String("type"));
    const std::string kind = type.value_or(old_type.value_or("default"));
    if (kind != "default") {
      return Unserved(config, key, fmt::format("of type {}", kind), "default");
    }
    ASSIGN_OR_RETURN(traits.rope_theta,
                     PositiveOr(*rope, "rope_theta", static_cast<double>(traits.rope_theta)));
  }
  return {};
}

Status RefuseSlidingWindow(const JsonObject& config) {
  RETURN_IF_ERROR(RefuseFlag(config, "use_sliding_window"));
  const auto element = config.Element("layer_types");
  simdjson::dom::array types;
  if (!element || element->get_array().get(types) != simdjson::SUCCESS) {
    return {};
  }
  for (const simdjson::dom::element type : types) {
    std::string_view name;
    if (type.get_string().get(name) != simdjson::SUCCESS || name != "full_attention") {
      return Unserved(config, "layer_types", name, "full_attention");
    }
  }
  return {};
}

Result<bool> IsCausal(const JsonObject& config, std::string_view model_type,
                      std::string_view class_name) {
  ASSIGN_OR_RETURN(const std::optional<bool> is_causal, config.Bool("is_causal"));
  ASSIGN_OR_RETURN(const std::optional<bool> bidirectional,
                   config.Bool("use_bidirectional_attention"));
  if (is_causal.value_or(false) && bidirectional.value_or(false)) {
    return InvalidArgument(
        fmt::format("{}: \"is_causal\" and \"use_bidirectional_attention\" cannot both be true",
                    config.where()),
        "is_causal");
  }
  if (model_type == kPplxModelType || class_name == kPplxClass) {
    return false;
  }
  return is_causal.value_or(!bidirectional.value_or(false));
}

Status ReadQwen3(const JsonObject& config, std::string_view model_type, Traits& traits) {
  traits.architecture = Architecture::kQwen3;
  RETURN_IF_ERROR(ReadSharedSizes(config, kKeys, traits));
  ASSIGN_OR_RETURN(traits.num_key_value_heads,
                   SizeOr(config, "num_key_value_heads", kMaxWidth, traits.num_attention_heads));
  ASSIGN_OR_RETURN(traits.head_dim, SizeOr(config, "head_dim", kMaxWidth, 128));
  if (traits.num_attention_heads % traits.num_key_value_heads != 0) {
    return InvalidArgument(
        fmt::format("{}: \"num_attention_heads\" must be a multiple of \"num_key_value_heads\": {} "
                    "and {}",
                    config.where(), traits.num_attention_heads, traits.num_key_value_heads),
        "num_key_value_heads");
  }
  if (traits.head_dim % 2 != 0) {
    return InvalidArgument(fmt::format("{}: \"head_dim\" must be even for rotary embedding: {}",
                                       config.where(), traits.head_dim),
                           "head_dim");
  }
  ASSIGN_OR_RETURN(traits.norm_epsilon, PositiveOr(config, "rms_norm_eps", 1e-6));
  constexpr std::array<std::string_view, 1> kServed = {"silu"};
  RETURN_IF_ERROR(ReadActivation(config, kKeys.activation, traits, "silu", kServed, "silu"));
  RETURN_IF_ERROR(ReadRope(config, traits));
  RETURN_IF_ERROR(RefuseSlidingWindow(config));
  ASSIGN_OR_RETURN(const std::optional<bool> bias, config.Bool("attention_bias"));
  traits.attention_bias = bias.value_or(false);
  ASSIGN_OR_RETURN(traits.causal, IsCausal(config, model_type, traits.class_name));
  return {};
}

}  // namespace

std::string_view ArchitectureName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kBert: return "bert";
    case Architecture::kRoberta: return "roberta";
    case Architecture::kMpnet: return "mpnet";
    case Architecture::kDistilBert: return "distilbert";
    case Architecture::kQwen3: return "qwen3";
  }
  return "unknown";
}

Result<Traits> ParseTraits(const JsonObject& config) {
  ASSIGN_OR_RETURN(const std::string model_type, config.RequiredString("model_type"));
  Traits traits;
  ASSIGN_OR_RETURN(traits.class_name, ClassName(config));
  if (model_type == "bert") {
    RETURN_IF_ERROR(ReadBert(config, traits));
  } else if (model_type == "xlm-roberta" || model_type == "roberta") {
    RETURN_IF_ERROR(ReadRoberta(config, traits));
  } else if (model_type == "mpnet") {
    RETURN_IF_ERROR(ReadMpnet(config, traits));
  } else if (model_type == "distilbert") {
    RETURN_IF_ERROR(ReadDistilBert(config, traits));
  } else if (model_type == "qwen3" || model_type == kPplxModelType) {
    RETURN_IF_ERROR(ReadQwen3(config, model_type, traits));
  } else {
    return Unserved(
        config, "model_type", model_type,
        fmt::format("bert, roberta, xlm-roberta, mpnet, distilbert, qwen3, {}", kPplxModelType));
  }
  return traits;
}

}  // namespace bouquet::model
