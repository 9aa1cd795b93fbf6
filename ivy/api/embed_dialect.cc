#include "ivy/api/embed_dialect.h"

namespace bouquet::ivy::api {

std::optional<Error> CheckCombinations(const Request& request) {
  if (request.prompt && request.prompt_name) {
    return Error{ErrorKind::kInvalidValue, "prompt and prompt_name exclude each other: give one",
                 "prompt"};
  }
  if (request.max_tokens == 0) {
    return Error{ErrorKind::kInvalidValue,
                 "must be at least 1, or -1 for the model's maximum, not 0",
                 "truncate_prompt_tokens"};
  }
  if (request.max_tokens && request.truncate == false) {
    return Error{ErrorKind::kInvalidValue,
                 "truncate_prompt_tokens asks to truncate and truncate says not to: give one",
                 "truncate"};
  }
  return std::nullopt;
}

std::span<const float> RowOf(const EncodedRows& rows, size_t index) {
  return std::span<const float>(rows.values).subspan(index * rows.dimensions, rows.dimensions);
}

bool HasRow(const EncodedRows& rows, size_t index) {
  return rows.statuses.empty() || rows.statuses[index].ok();
}

}  // namespace bouquet::ivy::api
