#include "ivy/handlers/resolve_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "ivy/api/field_table.h"

namespace bouquet::ivy {
namespace {

/// The model's own prompt of that name, or its default one.
Result<std::string> ResolvePrompt(api::Request& request, const model::Prompts& prompts) {
  if (request.prompt) {
    return *std::move(request.prompt);
  }
  const std::optional<std::string>& name =
      request.prompt_name ? request.prompt_name : prompts.default_name;
  if (!name) {
    return std::string();
  }
  if (const auto found = prompts.by_name.find(*name); found != prompts.by_name.end()) {
    return found->second;
  }
  std::string known;
  for (const auto& [prompt_name, text] : prompts.by_name) {
    known += (known.empty() ? "" : ", ") + prompt_name;
  }
  return InvalidArgument(fmt::format("the model has no prompt of this name: \"{}\"; it has: {}",
                                     api::Shorten(*name), known.empty() ? "none" : known),
                         "prompt_name");
}

Result<uint32_t> ResolveDimensions(const api::Request& request, const model::ModelFolder& folder) {
  const int32_t width = folder.pipeline.width;
  if (!request.dimensions) {
    const int32_t cut = folder.truncate_dim.value_or(width);
    return static_cast<uint32_t>(std::clamp(cut, 1, width));
  }
  if (*request.dimensions < 1 || *request.dimensions > width) {
    return InvalidArgument(
        fmt::format("must be 1..{}, the model's width, not {}", width, *request.dimensions),
        "dimensions");
  }
  return static_cast<uint32_t>(*request.dimensions);
}

text::OverLength ResolveOverLength(const api::Request& request, OverLengthPolicy policy) {
  if (request.truncate) {
    return *request.truncate ? text::OverLength::kTruncate : text::OverLength::kError;
  }
  if (request.max_tokens) {
    return text::OverLength::kTruncate;
  }
  switch (policy) {
    case OverLengthPolicy::kDialect: return request.dialect_over_length;
    case OverLengthPolicy::kError: return text::OverLength::kError;
    case OverLengthPolicy::kTruncate: return text::OverLength::kTruncate;
  }
  return request.dialect_over_length;
}

}  // namespace

int32_t MaxInputTokens(const model::ModelFolder& folder, const Config& config) {
  const int64_t model = folder.max_input_tokens;
  return static_cast<int32_t>(config.max_input_tokens > 0 ? std::min(config.max_input_tokens, model)
                                                          : model);
}

Result<EncodeRequest> ResolveRequest(api::Request request, const model::ModelFolder& folder,
                                     const Config& config) {
  EncodeRequest encode;
  encode.field = std::move(request.inputs_field);
  encode.field_is_list = request.inputs_are_list;
  encode.over_length = ResolveOverLength(request, config.over_length);
  encode.truncation_side = request.truncation_side.value_or(text::TruncationSide::kRight);
  const int32_t longest = MaxInputTokens(folder, config);
  if (request.max_tokens && *request.max_tokens > longest) {
    return InvalidArgument(fmt::format("must be at most {}, the longest input of the model, not {}",
                                       longest, *request.max_tokens),
                           "truncate_prompt_tokens");
  }
  encode.max_tokens = longest;
  if (request.max_tokens && *request.max_tokens > 0) {
    encode.max_tokens = static_cast<int32_t>(*request.max_tokens);
  }
  ASSIGN_OR_RETURN(encode.output.dimensions, ResolveDimensions(request, folder));
  encode.output.normalize = request.normalize.value_or(folder.pipeline.ends_normalized);
  ASSIGN_OR_RETURN(encode.prompt, ResolvePrompt(request, folder.prompts));
  encode.parse_special = config.parse_special_in_text;
  encode.inputs = std::move(request.inputs);
  return encode;
}

Result<TextRequest> ResolveTextRequest(api::Request request, const model::ModelFolder& folder,
                                       const Config& config) {
  TextRequest text;
  text.field = std::move(request.inputs_field);
  text.field_is_list = request.inputs_are_list;
  if (request.prompt_name) {  // a default prompt is for vectors
    ASSIGN_OR_RETURN(text.prompt, ResolvePrompt(request, folder.prompts));
  }
  text.add_special_tokens = request.add_special_tokens;
  text.skip_special_tokens = request.skip_special_tokens;
  text.count_only = request.count_only;
  text.parse_special = config.parse_special_in_text;
  text.inputs = std::move(request.inputs);
  return text;
}

}  // namespace bouquet::ivy
