#include "ivy/handlers/info_handler.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/json_writer.h"
#include "ivy/handlers/resolve_request.h"

namespace bouquet::ivy {
namespace {

using model::PoolingMode;

std::string_view PoolingName(PoolingMode mode) {
  switch (mode) {
    case PoolingMode::kCls: return "cls";
    case PoolingMode::kMax: return "max";
    case PoolingMode::kMean: return "mean";
    case PoolingMode::kMeanSqrtLength: return "mean_sqrt_len";
    case PoolingMode::kWeightedMean: return "weighted_mean";
    case PoolingMode::kLastToken: return "last_token";
  }
  return "unknown";
}

/// The modes that the folder's pooling concatenates, with "+" between them.
std::string PoolingOf(const model::Pipeline& pipeline) {
  std::string names;
  for (const model::Module& module : pipeline.modules) {
    if (const auto* pooling = std::get_if<model::PoolingModule>(&module)) {
      for (const PoolingMode mode : pooling->modes) {
        names += (names.empty() ? "" : "+") + std::string(PoolingName(mode));
      }
    }
  }
  return names;
}

std::string_view OverLengthName(OverLengthPolicy policy) {
  switch (policy) {
    case OverLengthPolicy::kDialect: return "dialect";
    case OverLengthPolicy::kError: return "error";
    case OverLengthPolicy::kTruncate: return "truncate";
  }
  return "dialect";
}

/// The fields that text-embeddings-inference has.
void WriteTeiFields(const ModelEntry& entry, const Config& config, JsonWriter& json) {
  const std::shared_ptr<const ServedModel> served = entry.served();
  const EngineFacts facts = entry.loaded() ? entry.facts() : EngineFacts();
  json.Field("model_id", entry.name()).Key("model_sha").Null().Field("model_dtype", facts.dtype);
  json.Field("served_model_name", entry.name());
  json.Key("model_type").BeginObject().Key("embedding").BeginObject();
  json.Field("pooling", PoolingOf(served->folder.pipeline)).EndObject().EndObject();
  json.Field("max_concurrent_requests", config.max_concurrent_requests);
  json.Field("max_input_length", MaxInputTokens(served->folder, config));
  json.Field("max_batch_tokens", facts.step_tokens);
  json.Field("max_batch_requests", facts.max_batch_sequences);
  json.Field("max_client_batch_size", config.max_inputs_per_request);
  json.Field("auto_truncate", config.over_length != OverLengthPolicy::kError);
  json.Field("tokenization_workers", config.http_threads);
  json.Field("version", config.version).Key("sha").Null().Key("docker_label").Null();
}

void WriteModel(const ModelEntry& entry, const Config& config, JsonWriter& json) {
  const std::shared_ptr<const ServedModel> served = entry.served();
  const model::ModelFolder& folder = served->folder;
  json.BeginObject().Field("id", entry.name()).Key("aliases").BeginArray();
  for (const std::string& alias : entry.aliases()) {
    json.Value(alias);
  }
  json.EndArray().Field("identity", folder.identity);
  json.Field("architecture", model::ArchitectureName(folder.traits.architecture));
  json.Field("dimensions", folder.pipeline.width);
  json.Field("normalized", folder.pipeline.ends_normalized);
  json.Field("vocabulary_rows", folder.traits.vocabulary_rows);
  json.Field("max_input_tokens", MaxInputTokens(folder, config));
  json.Key("prompts").BeginArray();
  for (const auto& [name, text] : folder.prompts.by_name) {
    json.Value(name);
  }
  json.EndArray().Field("ready", entry.Check().ready);
  if (entry.loaded()) {
    json.Field("device", entry.facts().device);
    json.Field("device_description", entry.facts().device_description);
    json.Field("dtype", entry.facts().dtype);
    json.Field("numerics", entry.facts().numerics);
  }
  json.EndObject();
}

void WriteLimits(const Config& config, JsonWriter& json) {
  json.BeginObject();
  json.Field("max_body_bytes", config.max_body_bytes);
  json.Field("max_header_bytes", config.max_header_bytes);
  json.Field("max_buffered_bytes", config.max_buffered_bytes);
  json.Field("max_connections", config.max_connections);
  json.Field("max_concurrent_requests", config.max_concurrent_requests);
  json.Field("max_json_depth", config.max_json_depth);
  json.Field("max_inputs_per_request", config.max_inputs_per_request);
  json.Field("max_tokens_per_request", config.max_tokens_per_request);
  json.Field("max_queue_ms", config.max_queue_ms);
  json.Field("read_timeout_ms", config.read_timeout_ms);
  json.Field("write_timeout_ms", config.write_timeout_ms);
  json.Field("idle_timeout_ms", config.idle_timeout_ms);
  json.Field("request_timeout_ms", config.request_timeout_ms);
  json.Field("drain_timeout_ms", config.drain_timeout_ms);
  json.Field("over_length", OverLengthName(config.over_length));
  json.Field("token_input", config.accept_token_ids ? "accept" : "reject");
  json.Field("special_tokens_in_text", config.parse_special_in_text ? "parse" : "literal");
  json.Field("strict_fields", config.strict_fields).EndObject();
}

}  // namespace

http::Response InfoHandler::Show() const {
  const std::shared_ptr<const Config> config = config_.Current();
  JsonWriter json;
  json.BeginObject();
  WriteTeiFields(*models_.entries().front(), *config, json);
  json.Key("bouquet").BeginObject().Key("models").BeginArray();
  for (const auto& entry : models_.entries()) {
    WriteModel(*entry, *config, json);
  }
  json.EndArray().Key("limits");
  WriteLimits(*config, json);
  json.EndObject().EndObject();
  http::Response response;
  response.body = std::move(json).Take();
  return response;
}

}  // namespace bouquet::ivy
