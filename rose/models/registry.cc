#include <fmt/format.h>

#include "rose/models/bert.h"
#include "rose/models/model.h"
#include "rose/models/qwen3.h"
#include "rose/weights/name_map.h"
#include "rose/weights/parameter_count.h"

namespace bouquet::rose {
namespace {

using model::Architecture;
using model::Traits;

Status FindPrefix(const Traits& traits, WeightSet& weights) {
  const auto has = [&](std::string_view name) { return weights.Has(name); };
  std::optional<std::string> prefix = FindNamePrefix(traits.architecture, has);
  if (!prefix) {
    return NotFound(fmt::format("tensor is missing under every known prefix: {}, in {}",
                                AnchorName(traits.architecture), weights.FileNames()),
                    std::string(AnchorName(traits.architecture)));
  }
  weights.set_prefix(*std::move(prefix));
  return {};
}

Result<std::unique_ptr<Model>> LoadFamily(const Traits& traits, WeightSet& weights,
                                          int32_t max_tokens, Backend& backend) {
  switch (traits.architecture) {
    case Architecture::kBert:
    case Architecture::kRoberta:
    case Architecture::kMpnet:
    case Architecture::kDistilBert: return LoadBert(traits, weights, max_tokens, backend);
    case Architecture::kQwen3: return LoadQwen3(traits, weights, max_tokens, backend);
  }
  return Unimplemented("no network for this architecture");
}

}  // namespace

Result<std::unique_ptr<Model>> LoadModel(const Traits& traits, WeightSet& weights,
                                         int32_t max_tokens, Backend& backend) {
  RETURN_IF_ERROR(FindPrefix(traits, weights));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, LoadFamily(traits, weights, max_tokens, backend));
  RETURN_IF_ERROR(weights.CheckNothingLeft([&](std::string_view name) {
    return HarmlessReason(traits.architecture, name).has_value();
  }));
  RETURN_IF_ERROR(CheckParameterCount(traits, weights));
  return model;
}

}  // namespace bouquet::rose
