#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "client/embed_client.h"

namespace bouquet::client {

/// Reads the rows out of an answer's body. Vectors may be arrays of numbers or base64 of
/// little-endian float32. Error: kInternal when the body is no JSON of that dialect, when the rows
/// are not as many as `num_inputs`, differ in width, come twice or have values that are not finite.
Result<EmbedRows> ReadAnswer(Dialect dialect, std::string_view body, size_t num_inputs);

/// The message in the body of an error, whatever the dialect; the beginning of the body otherwise.
std::string ReadErrorMessage(std::string_view body);

}  // namespace bouquet::client
