#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bouquet::ivy::api {

/// Where and why a text is no JSON that can be used.
struct JsonFault {
  enum class Kind : uint8_t {
    kSyntax,
    kUtf8,           // invalid bytes inside a string
    kLoneSurrogate,  // an escape that is no character
    kTooDeep,
    kNumberRange,  // valid JSON, but no 64-bit integer and no finite double
  };
  Kind kind = Kind::kSyntax;
  size_t offset = 0;  // of the offending byte
  std::string path;   // of the value around it: `input[3]`; empty at the top
  std::string_view what;
};

/// Finds the first fault by position, or nothing when the text is sound. The fast parser says only
/// that there is one; this is the slow second look that says where. `max_depth` counts arrays and
/// objects inside one another.
std::optional<JsonFault> FindJsonFault(std::string_view text, size_t max_depth);

}  // namespace bouquet::ivy::api
