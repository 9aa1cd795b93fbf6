#include "ivy/config.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace bouquet::ivy {
namespace {

struct Bounds {
  std::string_view flag;
  int64_t value;
  int64_t minimum;
  int64_t maximum;
};

constexpr int64_t kDayMs = 24LL * 3600 * 1000;
constexpr int64_t kGiB = 1LL << 30;

}  // namespace

Status Validate(const Config& config) {
  const Bounds bounds[] = {
      {"port", config.port, 0, 65'535},
      {"http-threads", config.http_threads, 1, 256},
      {"max-body-bytes", config.max_body_bytes, 1024, kGiB},
      {"max-header-bytes", config.max_header_bytes, 1024, 1 << 20},
      {"max-buffered-bytes", config.max_buffered_bytes, 1 << 20, 64 * kGiB},
      {"max-connections", config.max_connections, 1, 1'000'000},
      {"max-concurrent-requests", config.max_concurrent_requests, 1, 1'000'000},
      // Four levels are what the deepest known body needs.
      {"max-json-depth", config.max_json_depth, 4, 256},
      {"max-inputs-per-request", config.max_inputs_per_request, 1, 1'000'000},
      {"max-tokens-per-request", config.max_tokens_per_request, 1, 1'000'000'000},
      {"max-input-tokens", config.max_input_tokens, 0, 1'000'000'000},
      {"max-queue-ms", config.max_queue_ms, 1, kDayMs},
      {"read-timeout-ms", config.read_timeout_ms, 10, kDayMs},
      {"write-timeout-ms", config.write_timeout_ms, 10, kDayMs},
      {"idle-timeout-ms", config.idle_timeout_ms, 10, kDayMs},
      {"request-timeout-ms", config.request_timeout_ms, 1, kDayMs},
      {"drain-delay-ms", config.drain_delay_ms, 0, kDayMs},
      {"drain-timeout-ms", config.drain_timeout_ms, 0, kDayMs},
  };
  for (const Bounds& bound : bounds) {
    if (bound.value < bound.minimum || bound.value > bound.maximum) {
      return InvalidArgument(fmt::format("--{} must be {}..{}, not {}", bound.flag, bound.minimum,
                                         bound.maximum, bound.value),
                             std::string(bound.flag));
    }
  }
  if (config.host.empty()) {
    return InvalidArgument("--host must name an address to listen on", "host");
  }
  if (config.max_buffered_bytes < config.max_body_bytes) {
    return InvalidArgument(
        fmt::format("--max-buffered-bytes must not be below --max-body-bytes, or the largest body "
                    "could never be read: {} against {}",
                    config.max_buffered_bytes, config.max_body_bytes),
        "max-buffered-bytes");
  }
  if (config.max_input_tokens > config.max_tokens_per_request) {
    return InvalidArgument(
        fmt::format("--max-input-tokens must not be above --max-tokens-per-request, or the longest "
                    "input could never be sent: {} against {}",
                    config.max_input_tokens, config.max_tokens_per_request),
        "max-input-tokens");
  }
  if (!config.api_key_file.empty() && !config.api_keys.empty()) {
    return InvalidArgument("--api-key-file and BOUQUET_API_KEYS exclude each other: give one",
                           "api-key-file");
  }
  if (config.protect_metrics && config.api_key_file.empty() && config.api_keys.empty()) {
    return InvalidArgument("--protect-metrics needs keys: give --api-key-file or BOUQUET_API_KEYS",
                           "protect-metrics");
  }
  return Status();
}

Status NeedsNoRestart(std::initializer_list<std::pair<std::string_view, bool>> unchanged) {
  std::string changed;
  for (const auto& [flag, is_unchanged] : unchanged) {
    if (!is_unchanged) {
      changed += fmt::format("{}{}", changed.empty() ? "" : ", ", flag);
    }
  }
  return changed.empty() ? Status() : FailedPrecondition("needs a restart: " + changed);
}

Status CheckReload(const Config& running, const Config& next) {
  const auto is_open = [](const Config& config) {
    return config.api_key_file.empty() && config.api_keys.empty();
  };
  return NeedsNoRestart({
      {"--host", running.host == next.host},
      {"--port", running.port == next.port},
      {"--http-threads", running.http_threads == next.http_threads},
      {"--cors-allow-origin", running.cors_allow_origins == next.cors_allow_origins},
      {"--protect-metrics", running.protect_metrics == next.protect_metrics},
      {"keys where there were none, or none where there were", is_open(running) == is_open(next)},
  });
}

}  // namespace bouquet::ivy
