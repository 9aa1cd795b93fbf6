#include "cli/gateway_flags.h"

#include <fmt/format.h>

#include <utility>

namespace bouquet::cli {
namespace {

void AddLimits(CLI::App& command, ivy::Config& config) {
  AddFlag(command, "--max-body-bytes", config.max_body_bytes, "of a request; beyond it 413");
  AddFlag(command, "--max-header-bytes", config.max_header_bytes, "of a request; beyond it 431");
  AddFlag(command, "--max-buffered-bytes", config.max_buffered_bytes,
          "bodies held at once, all connections together; beyond it 429");
  AddFlag(command, "--max-connections", config.max_connections, "open at once");
  AddFlag(command, "--max-concurrent-requests", config.max_concurrent_requests,
          "in progress at once; beyond it 429");
  AddFlag(command, "--max-json-depth", config.max_json_depth, "of a body; beyond it 400");
  AddFlag(command, "--max-inputs-per-request", config.max_inputs_per_request, "beyond it 413");
  AddFlag(command, "--max-tokens-per-request", config.max_tokens_per_request, "beyond it 413");
  AddFlag(command, "--max-input-tokens", config.max_input_tokens,
          "longest input; 0: the model's maximum, which this can only lower");
  AddFlag(command, "--max-queue-ms", config.max_queue_ms,
          "work that may wait, in time at the measured speed; beyond it 429 with Retry-After");
  AddFlag(command, "--read-timeout-ms", config.read_timeout_ms,
          "from the first byte of a request to its last; beyond it 408");
  AddFlag(command, "--write-timeout-ms", config.write_timeout_ms, "for a client to take an answer");
  AddFlag(command, "--idle-timeout-ms", config.idle_timeout_ms, "between requests of a connection");
  AddFlag(command, "--request-timeout-ms", config.request_timeout_ms,
          "upper bound of any deadline; beyond it 504");
  AddFlag(command, "--drain-delay-ms", config.drain_delay_ms,
          "after SIGTERM: from not ready to refusing new requests");
  AddFlag(command, "--drain-timeout-ms", config.drain_timeout_ms,
          "after SIGTERM: for the requests under way");
}

void AddBehaviour(CLI::App& command, GatewayFlags& flags) {
  AddFlag(command, "--over-length", flags.over_length,
          "inputs over the model's maximum, where a request does not say: error, truncate, or "
          "dialect: as the dialect's own server does (OpenAI error, TEI truncate)")
      ->check(CLI::IsMember({"dialect", "error", "truncate"}));
  AddFlag(command, "--token-input", flags.token_input, "token ids as inputs: accept or reject")
      ->check(CLI::IsMember({"accept", "reject"}));
  AddFlag(
      command, "--special-tokens-in-text", flags.special_tokens_in_text,
      "parse: \"[SEP]\" in a text is the special token, as the reference reads it; literal: text")
      ->check(CLI::IsMember({"parse", "literal"}));
  AddFlag(command, "--strict-fields", flags.config.strict_fields,
          "true: a field that is not known is an error; false: it is ignored");
  AddFlag(command, "--api-key-file", flags.config.api_key_file,
          "one key a line; without keys everything is open");
  AddFlag(command, "--api-keys", flags.config.api_keys, "keys, separated by commas");
  AddFlag(command, "--protect-metrics", flags.config.protect_metrics,
          "true: /metrics needs a key too");
  AddFlag(command, "--cors-allow-origin", flags.config.cors_allow_origins,
          "origins whose pages may call; * for any");
}

}  // namespace

void GatewayFlags::AddTo(CLI::App& command) {
  command.add_option("MODEL", model, "model folder")->required();
  AddFlag(command, "--name", name, "the model's name in requests; empty: the folder's name");
  AddFlag(command, "--alias", aliases, "further names that requests may use");
  AddFlag(command, "--host", config.host, "address to listen on");
  AddFlag(command, "--port", config.port, "0: any free one, told at start")
      ->check(CLI::Range(0, 65535));
  AddFlag(command, "--http-threads", config.http_threads, "threads of the gateway");
  AddFlag(command, "--text-workers", text_workers,
          "threads that tokenize long texts; 0: one for every two cores")
      ->check(CLI::Range(0, 256));
  AddLimits(command, config);
  AddBehaviour(command, *this);
}

ivy::Config GatewayFlags::Resolve() const {
  ivy::Config resolved = config;
  resolved.version = BOUQUET_VERSION;
  resolved.accept_token_ids = token_input == "accept";
  resolved.parse_special_in_text = special_tokens_in_text == "parse";
  resolved.over_length = over_length == "error"      ? ivy::OverLengthPolicy::kError
                         : over_length == "truncate" ? ivy::OverLengthPolicy::kTruncate
                                                     : ivy::OverLengthPolicy::kDialect;
  return resolved;
}

Result<model::ModelFolder> GatewayFlags::OpenFolder() const {
  ASSIGN_OR_RETURN(model::ModelFolder folder, model::ModelFolder::Open(model));
  if (!name.empty()) {
    folder.name = name;
  }
  return folder;
}

ivy::EncoderOptions GatewayFlags::EncoderOptions() const {
  ivy::EncoderOptions options;
  options.max_tokens_per_request = config.max_tokens_per_request;
  options.max_input_tokens = static_cast<int32_t>(config.max_input_tokens);
  return options;
}

Status GatewayFlags::CheckReload(const GatewayFlags& next) const {
  return ivy::NeedsNoRestart({{"MODEL", model == next.model},
                              {"--name", name == next.name},
                              {"--alias", aliases == next.aliases},
                              {"--text-workers", text_workers == next.text_workers}});
}

Status GatewayFlags::CheckAgainst(const model::ModelFolder& folder) const {
  if (config.max_input_tokens > folder.max_input_tokens) {
    return InvalidArgument(fmt::format(
        "--max-input-tokens can only lower the model's maximum: {}, the model allows {}",
        config.max_input_tokens, folder.max_input_tokens));
  }
  return {};
}

}  // namespace bouquet::cli
