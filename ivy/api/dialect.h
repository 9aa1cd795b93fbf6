#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bouquet::ivy::api {

/// Whose request and error shapes a route speaks. A closed set: it is a metric label.
enum class Dialect : uint8_t { kOpenAi, kTei };

inline constexpr std::array<std::string_view, 2> kDialectNames = {"openai", "tei"};

constexpr std::string_view DialectName(Dialect dialect) {
  return kDialectNames[static_cast<size_t>(dialect)];
}

}  // namespace bouquet::ivy::api
