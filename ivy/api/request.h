#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ivy/api/error.h"
#include "ivy/encode/encode_request.h"
#include "text/text_pipeline.h"

namespace bouquet::ivy::api {

enum class VectorEncoding : uint8_t {
  kFloat,   // a JSON array of the shortest decimals that read back as the same float32
  kBase64,  // standard alphabet with padding over little-endian float32
};

/// The one internal request: every dialect is parsed into it and rendered from it; nothing behind
/// the parser knows a dialect. What a body left out is nullopt, and is resolved against the model
/// and the flags in handlers/resolve_request.
struct Request {
  std::string model;  // as the body says; empty: the default model

  std::vector<EncodeInput> inputs;
  std::string inputs_field;  // path of the inputs in the body
  bool inputs_are_list = true;

  std::optional<std::string> prompt;       // literal prefix
  std::optional<std::string> prompt_name;  // a key of the model's prompts

  text::OverLength dialect_over_length = text::OverLength::kError;  // when nothing else decides
  std::optional<bool> truncate;
  std::optional<text::TruncationSide> truncation_side;
  std::optional<int64_t> max_tokens;  // of one input; -1: the model's maximum

  std::optional<int64_t> dimensions;
  std::optional<bool> normalize;
  VectorEncoding encoding = VectorEncoding::kFloat;
  bool allow_partial = false;  // items that failed alone are answered in place

  // Of the routes that tokenize and decode.
  bool add_special_tokens = true;
  bool skip_special_tokens = true;
  bool return_token_strings = false;
  bool count_only = false;
};

struct ParseOptions {
  size_t max_json_depth = 16;    // --max-json-depth
  size_t max_inputs = 2048;      // --max-inputs-per-request
  bool strict_fields = false;    // --strict-fields: an unknown field is an error
  bool accept_token_ids = true;  // --token-input
};

using ParseResult = std::variant<Request, Error>;

}  // namespace bouquet::ivy::api
