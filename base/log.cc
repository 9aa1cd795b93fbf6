#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <iterator>
#include <memory>

#include "base/json.h"

namespace bouquet {
namespace {

/// The message as a JSON string with its quotes: %* in the pattern.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    std::string text;
    AppendJsonString({message.payload.data(), message.payload.size()}, text);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

}  // namespace

Status StartLogging(std::string_view level, std::string_view format) {
  const auto parsed = level == "debug"     ? spdlog::level::debug
                      : level == "info"    ? spdlog::level::info
                      : level == "warning" ? spdlog::level::warn
                      : level == "error"   ? spdlog::level::err
                      : level == "off"     ? spdlog::level::off
                                           : spdlog::level::n_levels;
  if (parsed == spdlog::level::n_levels) {
    return InvalidArgument(
        fmt::format("--log-level must be debug, info, warning, error or off: {}", level));
  }
  if (format != "text" && format != "json") {
    return InvalidArgument(fmt::format("--log-format must be text or json: {}", format));
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JsonMessage>('*').set_pattern(
      format == "json" ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%*})"
                       : "%Y-%m-%d %H:%M:%S.%e %l %v");
  auto logger = std::make_shared<spdlog::logger>("bouquet",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::move(formatter));
  logger->set_level(parsed);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace bouquet
