#pragma once

#include <optional>

#include "base/json.h"
#include "ivy/api/field_table.h"

namespace bouquet::ivy::api {

/// Reads the inputs of a request: a text, a list of texts, one list of token ids, or several.
/// Nothing is substituted: empty inputs are refused with their path, and an id is an integer as
/// JSON writes it (5.0 and 1e3 are not).
std::optional<Error> ParseInputs(simdjson::dom::element value, const FieldSpec& field,
                                 const BodySpec& spec, const ParseOptions& options,
                                 Request& request);

/// A JSON value for an error message, shortened.
std::string ShowValue(simdjson::dom::element value);

}  // namespace bouquet::ivy::api
