#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bouquet::ivy::api {

/// Appends the standard alphabet with padding (RFC 4648 section 4).
void AppendBase64(std::span<const std::byte> data, std::string& out);

/// Appends `values` as base64 of little-endian float32, whatever the host's order.
void AppendBase64Floats(std::span<const float> values, std::string& out);

}  // namespace bouquet::ivy::api
