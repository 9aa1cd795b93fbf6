#include "model/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <system_error>

#include "model/config_file.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxModules = 32;
constexpr size_t kMaxPoolingModes = 16;
constexpr int64_t kMaxFeatures = 1 << 20;

enum class ModuleKind : uint8_t { kTransformer, kPooling, kDense, kNormalize };

struct ModuleAlias {
  std::string_view type;
  ModuleKind kind;
};

// Full class names, as old and new releases of the library write them.
constexpr std::array<ModuleAlias, 14> kAliases = {{
    {"sentence_transformers.models.Transformer", ModuleKind::kTransformer},
    {"sentence_transformers.models.Transformer.Transformer", ModuleKind::kTransformer},
    {"sentence_transformers.base.modules.transformer.Transformer", ModuleKind::kTransformer},
    {"sentence_transformers.models.Pooling", ModuleKind::kPooling},
    {"sentence_transformers.models.Pooling.Pooling", ModuleKind::kPooling},
    {"sentence_transformers.sentence_transformer.modules.pooling.Pooling", ModuleKind::kPooling},
    {"sentence_transformers.models.Dense", ModuleKind::kDense},
    {"sentence_transformers.models.Dense.Dense", ModuleKind::kDense},
    {"sentence_transformers.base.modules.dense.Dense", ModuleKind::kDense},
    {"sentence_transformers.sentence_transformer.modules.dense.Dense", ModuleKind::kDense},
    {"sentence_transformers.models.Normalize", ModuleKind::kNormalize},
    {"sentence_transformers.models.Normalize.Normalize", ModuleKind::kNormalize},
    {"sentence_transformers.base.modules.normalize.Normalize", ModuleKind::kNormalize},
    {"sentence_transformers.sentence_transformer.modules.normalize.Normalize",
     ModuleKind::kNormalize},
}};

struct PoolingName {
  std::string_view name;      // in a `pooling_mode` value
  std::string_view flag_key;  // the older boolean
  PoolingMode mode;
};

// In the fixed order in which the older booleans are concatenated.
constexpr std::array<PoolingName, 6> kPoolingNames = {{
    {"cls", "pooling_mode_cls_token", PoolingMode::kCls},
    {"max", "pooling_mode_max_tokens", PoolingMode::kMax},
    {"mean", "pooling_mode_mean_tokens", PoolingMode::kMean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", PoolingMode::kMeanSqrtLength},
    {"weightedmean", "pooling_mode_weightedmean_tokens", PoolingMode::kWeightedMean},
    {"lasttoken", "pooling_mode_lasttoken", PoolingMode::kLastToken},
}};

struct ActivationName {
  std::string_view class_name;  // without its package
  std::string_view activation;
};

constexpr std::array<ActivationName, 6> kActivations = {{{"Identity", "identity"},
                                                         {"Tanh", "tanh"},
                                                         {"ReLU", "relu"},
                                                         {"GELU", "gelu"},
                                                         {"Sigmoid", "sigmoid"},
                                                         {"SiLU", "silu"}}};

/// One entry of modules.json.
struct Entry {
  size_t index = 0;
  ModuleKind kind = ModuleKind::kTransformer;
  std::string type;
  fs::path folder;
};

/// Where a module reads and what it gives, for checks between neighbours.
struct Flow {
  bool pooled = false;
  int32_t width = 0;
};

std::string Where(const Entry& entry) {
  return fmt::format("module {} ({})", entry.index, entry.type);
}

Result<fs::path> ModuleFolder(const fs::path& root, const JsonObject& item) {
  ASSIGN_OR_RETURN(const std::optional<std::string> stated, item.String("path"));
  const fs::path relative = stated.value_or("");
  // A model folder is someone else's data: it may name its own folders and nothing outside.
  bool inside = relative.is_relative();
  for (const fs::path& part : relative) {
    inside = inside && part != "..";
  }
  if (!inside) {
    return InvalidArgument(fmt::format("{}: \"path\" must stay inside the model folder: {}",
                                       item.where(), relative.string()),
                           "path");
  }
  return relative.empty() ? root : root / relative;
}

Result<Entry> ParseEntry(const fs::path& root, const JsonDocument& document, size_t index,
                         simdjson::dom::element element) {
  ASSIGN_OR_RETURN(
      const JsonObject item,
      JsonObject::From(element, fmt::format("{}: module {}", document.source(), index)));
  Entry entry;
  entry.index = index;
  ASSIGN_OR_RETURN(entry.type, item.RequiredString("type"));
  for (const ModuleAlias& alias : kAliases) {
    if (alias.type == entry.type) {
      entry.kind = alias.kind;
      ASSIGN_OR_RETURN(entry.folder, ModuleFolder(root, item));
      return entry;
    }
  }
  return Unimplemented(
      fmt::format("{}: module {} has a type that is not served, only Transformer, Pooling, Dense "
                  "and Normalize of sentence_transformers: {}",
                  document.source(), index, entry.type),
      fmt::format("[{}].type", index));
}

Result<std::vector<Entry>> ReadEntries(const fs::path& root, const JsonDocument& document) {
  simdjson::dom::array items;
  if (document.root().get_array().get(items) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: must be an array of modules, not {}", document.source(),
                                       JsonTypeName(document.root())));
  }
  std::vector<Entry> entries;
  for (const simdjson::dom::element element : items) {
    if (entries.size() == kMaxModules) {
      return InvalidArgument(fmt::format("{}: more modules than are served: limit {}",
                                         document.source(), kMaxModules));
    }
    ASSIGN_OR_RETURN(Entry entry, ParseEntry(root, document, entries.size(), element));
    const bool first = entries.empty();
    if (first != (entry.kind == ModuleKind::kTransformer)) {
      return Unimplemented(fmt::format("{}: the Transformer must be the first module and the only "
                                       "one of its kind: module {} is {}",
                                       document.source(), entry.index, entry.type),
                           fmt::format("[{}].type", entry.index));
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    return InvalidArgument(fmt::format("{}: must name at least one module", document.source()));
  }
  return entries;
}

Status AddPoolingMode(const JsonObject& config, std::string_view name, PoolingModule& pooling) {
  for (const PoolingName& known : kPoolingNames) {
    if (known.name == name) {
      if (pooling.modes.size() == kMaxPoolingModes) {
        return InvalidArgument(fmt::format("{}: \"pooling_mode\" names more than {} modes",
                                           config.where(), kMaxPoolingModes),
                               "pooling_mode");
      }
      pooling.modes.push_back(known.mode);
      return {};
    }
  }
  return Unimplemented(
      fmt::format("{}: \"pooling_mode\" must be cls, max, mean, mean_sqrt_len_tokens, weightedmean "
                  "or lasttoken, not {}",
                  config.where(), name),
      "pooling_mode");
}

Status ReadPoolingModes(const JsonObject& config, PoolingModule& pooling) {
  if (const auto stated = config.Element("pooling_mode")) {
    std::string_view name;
    if (stated->get_string().get(name) == simdjson::SUCCESS) {
      return AddPoolingMode(config, name, pooling);
    }
    simdjson::dom::array names;
    if (stated->get_array().get(names) != simdjson::SUCCESS || names.size() == 0) {
      return InvalidArgument(
          fmt::format("{}: \"pooling_mode\" must be a name or a list of names", config.where()),
          "pooling_mode");
    }
    for (const simdjson::dom::element element : names) {
      if (element.get_string().get(name) != simdjson::SUCCESS) {
        return InvalidArgument(fmt::format("{}: \"pooling_mode\" must hold names, not {}",
                                           config.where(), JsonTypeName(element)),
                               "pooling_mode");
      }
      RETURN_IF_ERROR(AddPoolingMode(config, name, pooling));
    }
    return {};
  }
  for (const PoolingName& known : kPoolingNames) {
    ASSIGN_OR_RETURN(const std::optional<bool> flag, config.Bool(known.flag_key));
    if (flag.value_or(false)) {
      pooling.modes.push_back(known.mode);
    }
  }
  if (pooling.modes.empty()) {
    pooling.modes.push_back(PoolingMode::kMean);
  }
  return {};
}

Status CheckWidth(const Entry& entry, const JsonObject& config, std::string_view key, int64_t found,
                  int32_t expected) {
  if (found == expected) {
    return {};
  }
  return InvalidArgument(
      fmt::format("{}: {} must take what the module before it gives: \"{}\" is {}, expected {}",
                  config.where(), Where(entry), key, found, expected),
      std::string(key));
}

// Modules can be told to read and write other values of the library's dictionary than the row.
Status RequireRowNames(const Entry& entry, const JsonObject& config) {
  for (const std::string_view key : {"module_input_name", "module_output_name"}) {
    ASSIGN_OR_RETURN(const std::optional<std::string> name, config.String(key));
    if (name && *name != "sentence_embedding") {
      return Unimplemented(fmt::format("{}: {} has \"{}\" {}, only sentence_embedding is served",
                                       config.where(), Where(entry), key, *name),
                           std::string(key));
    }
  }
  return {};
}

Result<PoolingModule> ReadPooling(const Entry& entry, Flow& flow) {
  ASSIGN_OR_RETURN(
      const JsonDocument document,
      ReadConfigFile(entry.folder / "config.json", fmt::format("the pooling of {}", Where(entry))));
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document.root(), document.source()));
  if (flow.pooled) {
    return Unimplemented(fmt::format("{}: only one Pooling is served: {} is the second",
                                     config.where(), Where(entry)));
  }
  const std::string_view width_key =
      config.Has("embedding_dimension") ? "embedding_dimension" : "word_embedding_dimension";
  ASSIGN_OR_RETURN(const int64_t width, config.RequiredInteger(width_key, 1, kMaxFeatures));
  RETURN_IF_ERROR(CheckWidth(entry, config, width_key, width, flow.width));
  PoolingModule pooling;
  RETURN_IF_ERROR(ReadPoolingModes(config, pooling));
  ASSIGN_OR_RETURN(const std::optional<bool> include_prompt, config.Bool("include_prompt"));
  pooling.include_prompt = include_prompt.value_or(true);
  // The reference library's own two code paths disagree about the first token here.
  for (const PoolingMode mode : pooling.modes) {
    if (mode == PoolingMode::kCls && !pooling.include_prompt) {
      return Unimplemented(fmt::format("{}: \"include_prompt\" false is not served together with "
                                       "pooling mode cls",
                                       config.where()),
                           "include_prompt");
    }
  }
  flow.pooled = true;
  flow.width = flow.width * static_cast<int32_t>(pooling.modes.size());
  return pooling;
}

Result<std::string> ActivationOf(const JsonObject& config) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, config.String("activation_function"));
  if (!name) {
    return std::string("tanh");  // the default of the library's constructor
  }
  for (const std::string_view package :
       {"torch.nn.modules.activation.", "torch.nn.modules.linear.", "torch.nn."}) {
    for (const ActivationName& known : kActivations) {
      if (*name == fmt::format("{}{}", package, known.class_name)) {
        return std::string(known.activation);
      }
    }
  }
  return Unimplemented(
      fmt::format("{}: \"activation_function\" must be torch's Identity, Tanh, ReLU, GELU, Sigmoid "
                  "or SiLU, not {}",
                  config.where(), *name),
      "activation_function");
}

Status RequirePooled(const Entry& entry, const Flow& flow) {
  if (flow.pooled) {
    return {};
  }
  return Unimplemented(
      fmt::format("{} before a Pooling is not served: rows are made by Pooling", Where(entry)));
}

Result<DenseModule> ReadDense(const Entry& entry, Flow& flow) {
  RETURN_IF_ERROR(RequirePooled(entry, flow));
  ASSIGN_OR_RETURN(
      const JsonDocument document,
      ReadConfigFile(entry.folder / "config.json", fmt::format("the sizes of {}", Where(entry))));
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document.root(), document.source()));
  RETURN_IF_ERROR(RequireRowNames(entry, config));
  DenseModule dense;
  dense.folder = entry.folder;
  ASSIGN_OR_RETURN(const int64_t in, config.RequiredInteger("in_features", 1, kMaxFeatures));
  ASSIGN_OR_RETURN(const int64_t out, config.RequiredInteger("out_features", 1, kMaxFeatures));
  RETURN_IF_ERROR(CheckWidth(entry, config, "in_features", in, flow.width));
  dense.in_features = static_cast<int32_t>(in);
  dense.out_features = static_cast<int32_t>(out);
  ASSIGN_OR_RETURN(const std::optional<bool> bias, config.Bool("bias"));
  dense.bias = bias.value_or(true);
  ASSIGN_OR_RETURN(dense.activation, ActivationOf(config));
  ASSIGN_OR_RETURN(const std::optional<bool> residual, config.Bool("use_residual"));
  dense.use_residual = residual.value_or(false);
  flow.width = dense.out_features;
  return dense;
}

// The folder of a Normalize module may be empty or absent.
Result<NormalizeModule> ReadNormalize(const Entry& entry, const Flow& flow) {
  RETURN_IF_ERROR(RequirePooled(entry, flow));
  ASSIGN_OR_RETURN(const std::optional<JsonDocument> document,
                   ReadOptionalConfigFile(entry.folder / "config.json",
                                          fmt::format("the settings of {}", Where(entry))));
  // Stored in the root, it would find the Transformer's config.json, which says nothing about it.
  if (document) {
    ASSIGN_OR_RETURN(const JsonObject config,
                     JsonObject::From(document->root(), document->source()));
    RETURN_IF_ERROR(RequireRowNames(entry, config));
  }
  return NormalizeModule{};
}

Result<Module> ReadModule(const Entry& entry, Flow& flow) {
  switch (entry.kind) {
    case ModuleKind::kPooling: {
      ASSIGN_OR_RETURN(PoolingModule pooling, ReadPooling(entry, flow));
      return Module(std::move(pooling));
    }
    case ModuleKind::kDense: {
      ASSIGN_OR_RETURN(DenseModule dense, ReadDense(entry, flow));
      return Module(std::move(dense));
    }
    case ModuleKind::kNormalize: {
      ASSIGN_OR_RETURN(NormalizeModule normalize, ReadNormalize(entry, flow));
      return Module(normalize);
    }
    case ModuleKind::kTransformer: break;
  }
  return Internal("a Transformer is not a module that makes rows");
}

// The reference library's rule for a folder without modules.json.
Pipeline DefaultPipeline(const fs::path& folder, const Traits& traits) {
  Pipeline pipeline;
  pipeline.transformer_folder = folder;
  PoolingModule pooling;
  pooling.modes.push_back(traits.class_name.ends_with("ForCausalLM") ? PoolingMode::kLastToken
                                                                     : PoolingMode::kMean);
  pipeline.modules.emplace_back(std::move(pooling));
  pipeline.width = traits.hidden_size;
  return pipeline;
}

Result<std::optional<JsonDocument>> ReadModulesFile(const fs::path& folder) {
  return ReadOptionalConfigFile(folder / "modules.json", "the pipeline of modules");
}

}  // namespace

Result<fs::path> FindTransformerFolder(const fs::path& folder) {
  ASSIGN_OR_RETURN(const std::optional<JsonDocument> document, ReadModulesFile(folder));
  if (!document) {
    return folder;
  }
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(folder, *document));
  return entries.front().folder;
}

std::string_view PoolingModeName(PoolingMode mode) {
  const auto* found = std::find_if(kPoolingNames.begin(), kPoolingNames.end(),
                                   [mode](const PoolingName& name) { return name.mode == mode; });
  CHECK(found != kPoolingNames.end());
  return found->name;
}

Result<Pipeline> ParsePipeline(const fs::path& folder, const Traits& traits) {
  ASSIGN_OR_RETURN(const std::optional<JsonDocument> document, ReadModulesFile(folder));
  if (!document) {
    return DefaultPipeline(folder, traits);
  }
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(folder, *document));
  Pipeline pipeline;
  pipeline.transformer_folder = entries.front().folder;
  Flow flow{false, traits.hidden_size};
  for (const Entry& entry : std::span(entries).subspan(1)) {
    ASSIGN_OR_RETURN(Module module, ReadModule(entry, flow));
    pipeline.modules.push_back(std::move(module));
    pipeline.module_folders.push_back(entry.folder);
  }
  if (!flow.pooled) {
    return Unimplemented(
        fmt::format("{}: a pipeline without Pooling gives one row per token, which is not served",
                    document->source()));
  }
  pipeline.width = flow.width;
  pipeline.ends_normalized = std::holds_alternative<NormalizeModule>(pipeline.modules.back());
  return pipeline;
}

}  // namespace bouquet::model
