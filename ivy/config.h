#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace bouquet::ivy {

/// What happens to an input that is longer than the model allows, where its request does not say.
enum class OverLengthPolicy : uint8_t {
  kDialect,  // as the dialect's own server does
  kError,
  kTruncate,
};

/// Every setting of the gateway, named after its flag (`--max-body-bytes` and so on). Checked as a
/// whole before anything starts; nothing is overridden silently.
struct Config {
  std::string host = "127.0.0.1";
  int32_t port = 8080;  // 0: any free one
  int32_t http_threads = 1;

  int64_t max_body_bytes = 16 << 20;
  int64_t max_header_bytes = 64 << 10;
  int64_t max_buffered_bytes = 256 << 20;
  int64_t max_connections = 4096;
  int64_t max_concurrent_requests = 1024;
  int64_t max_json_depth = 16;
  int64_t max_inputs_per_request = 2048;
  int64_t max_tokens_per_request = 300'000;
  int64_t max_input_tokens = 0;  // 0: the model's maximum; can only lower it
  int64_t max_queue_ms = 2000;   // for /info; the queue itself is Tulip's

  int64_t read_timeout_ms = 30'000;
  int64_t write_timeout_ms = 30'000;
  int64_t idle_timeout_ms = 75'000;
  int64_t request_timeout_ms = 30'000;  // upper bound of any client deadline
  int64_t drain_delay_ms = 0;           // from "not ready" to refusing
  int64_t drain_timeout_ms = 30'000;    // for what is under way

  OverLengthPolicy over_length = OverLengthPolicy::kDialect;
  bool strict_fields = false;
  bool accept_token_ids = true;       // --token-input=accept|reject
  bool parse_special_in_text = true;  // --special-tokens-in-text=parse|literal
  std::string api_key_file;           // one key a line; empty: see api_keys
  std::string api_keys;               // comma-separated; both empty: everything is open
  bool protect_metrics = false;
  std::vector<std::string> cors_allow_origins;

  std::string version = "0";  // of the software, for /info and the OpenAPI document
};

/// Error: kInvalidArgument naming the first flag that is out of its bounds, or the two that cannot
/// go together.
Status Validate(const Config& config);

/// For flags that a running server cannot take over: each with whether it is as it was. Error:
/// kFailedPrecondition naming those that are not.
Status NeedsNoRestart(std::initializer_list<std::pair<std::string_view, bool>> unchanged);

/// May a running gateway go over to `next`? Error: of NeedsNoRestart.
Status CheckReload(const Config& running, const Config& next);

}  // namespace bouquet::ivy
