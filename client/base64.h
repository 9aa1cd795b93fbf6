#pragma once

#include <string_view>
#include <vector>

namespace bouquet::client {

/// Appends the float32 values that `text` holds as base64 (RFC 4648 section 4) of little-endian
/// bytes, with or without padding. False when it is not that; `out` may then have grown.
bool AppendBase64Floats(std::string_view text, std::vector<float>& out);

}  // namespace bouquet::client
