#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bouquet::ivy::api {

/// What one float and its comma take in JSON, about: for reserving once.
inline constexpr size_t kTypicalFloatChars = 14;

/// Appends `[v, …]` without spaces: the shortest decimals that read back as the same float32. The
/// values must be finite (CHECK).
void AppendFloatArray(std::span<const float> values, std::string& out);

/// True when every value is neither infinite nor NaN.
bool AllFinite(std::span<const float> values);

}  // namespace bouquet::ivy::api
