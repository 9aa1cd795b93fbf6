#pragma once

#include "ivy/api/request.h"
#include "ivy/config.h"

namespace bouquet::ivy {

/// How bodies are read, by the flags.
inline api::ParseOptions ParseOptionsOf(const Config& config) {
  return {.max_json_depth = static_cast<size_t>(config.max_json_depth),
          .max_inputs = static_cast<size_t>(config.max_inputs_per_request),
          .strict_fields = config.strict_fields,
          .accept_token_ids = config.accept_token_ids};
}

}  // namespace bouquet::ivy
