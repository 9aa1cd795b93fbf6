#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "base/status.h"
#include "text/regex.h"

namespace bouquet::text {

// What the parsers of the parts of a tokenizer.json that are lists of stages share.

inline constexpr size_t kMaxStages = 64;  // of one part

/// kUnimplemented: "FILE: WHAT is not served: KIND".
Status NotServed(const JsonObject& stage, std::string_view what, std::string_view kind);

/// "pattern": {"String": "…"}, a literal that is not empty, or {"Regex": "…"}. `what` names the
/// stage in errors.
struct StagePattern {
  std::string text;
  bool is_regex = false;
};
Result<StagePattern> ParsePattern(const JsonObject& stage, std::string_view what);

/// The expression of such a pattern.
Result<std::shared_ptr<const Regex>> CompilePattern(const JsonObject& stage,
                                                    const StagePattern& pattern);

/// What a Replace puts in. Error: kInvalidArgument for more than kMaxContentBytes.
inline constexpr size_t kMaxContentBytes = 1024;
Result<std::string> ParseContent(const JsonObject& stage);

/// A string of one character. Error: kInvalidArgument.
Result<std::string> RequiredCharacter(const JsonObject& stage, std::string_view key);

/// Calls `on_stage(type, object)` for `part`, or in order for all that the Sequences in it hold
/// under `list_key`. Error: kInvalidArgument for more than kMaxStages, counted by `count`.
template <class OnStage>
Status ForEachStageOf(const JsonObject& part, std::string_view list_key, OnStage& on_stage,
                      size_t& count) {
  ASSIGN_OR_RETURN(const std::string type, part.RequiredString("type"));
  if (std::string_view(type) != "Sequence") {
    if (count++ == kMaxStages) {
      return InvalidArgument(
          fmt::format("{}: has too many stages: limit {}", part.where(), kMaxStages), "type");
    }
    return on_stage(type, part);
  }
  simdjson::dom::array parts;
  const std::optional<simdjson::dom::element> list = part.Element(list_key);
  if (!list || list->get_array().get(parts) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"{}\" must be an array", part.where(), list_key),
                           std::string(list_key));
  }
  for (const simdjson::dom::element element : parts) {
    ASSIGN_OR_RETURN(const JsonObject inner,
                     JsonObject::From(element, fmt::format("{}: \"{}\"", part.where(), list_key)));
    RETURN_IF_ERROR(ForEachStageOf(inner, list_key, on_stage, count));
  }
  return {};
}

/// The same for what stands under `key`; an absent or null part has no stage.
template <class OnStage>
Status ForEachStage(const JsonObject& root, std::string_view key, std::string_view list_key,
                    OnStage on_stage) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> part, root.Object(key));
  size_t count = 0;
  return part ? ForEachStageOf(*part, list_key, on_stage, count) : Status();
}

}  // namespace bouquet::text
