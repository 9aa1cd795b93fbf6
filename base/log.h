#pragma once

#include <string_view>

#include <spdlog/spdlog.h>  // the one place that names the logging library

#include "base/status.h"

namespace bouquet {

// Log lines go to standard error, as text or as one JSON object a line. Call spdlog's free
// functions through these names:
//   LogInfo("model loaded: {} in {} ms", name, ms);
// Nothing on the hot path logs; a failed request is one line at debug level.

enum class LogFormat : uint8_t { kText, kJson };

/// `level`: debug | info | warning | error | off. Error: kInvalidArgument naming what is allowed.
/// Call once, at start.
Status StartLogging(std::string_view level, std::string_view format);

template <class... Args>
void LogDebug(spdlog::format_string_t<Args...> text, Args&&... args) {
  spdlog::debug(text, std::forward<Args>(args)...);
}
template <class... Args>
void LogInfo(spdlog::format_string_t<Args...> text, Args&&... args) {
  spdlog::info(text, std::forward<Args>(args)...);
}
template <class... Args>
void LogWarning(spdlog::format_string_t<Args...> text, Args&&... args) {
  spdlog::warn(text, std::forward<Args>(args)...);
}
template <class... Args>
void LogError(spdlog::format_string_t<Args...> text, Args&&... args) {
  spdlog::error(text, std::forward<Args>(args)...);
}

}  // namespace bouquet
