#include "ivy/handlers/health_handler.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"

namespace bouquet::ivy {

Readiness HealthHandler::Check() const {
  if (draining_) {
    return {false, "the server is shutting down"};
  }
  Readiness all{true, {}};
  for (const auto& entry : models_.entries()) {
    Readiness readiness = entry->Check();
    if (!readiness.ready) {
      readiness.reason = entry->name() + ": " + readiness.reason;
      return readiness;
    }
    all.replicas += readiness.replicas;
    all.replicas_ready += readiness.replicas_ready;
  }
  return all;
}

http::Response HealthHandler::Live() const {
  http::Response response;
  response.body = R"({"status":"live"})";
  return response;
}

http::Response HealthHandler::Ready(const http::Request& request) const {
  const Readiness readiness = Check();
  if (!readiness.ready) {
    // The error object is what clients of the data routes know; status and reason are for people.
    http::Response response =
        http::ErrorResponse({api::ErrorKind::kUnavailable, "not ready: " + readiness.reason, ""},
                            api::Dialect::kOpenAi, request.request_id);
    JsonWriter json;
    json.BeginObject().Field("status", "not_ready").Field("reason", readiness.reason);
    json.Field("error", "not ready: " + readiness.reason).Field("error_type", "Unhealthy");
    json.EndObject();
    response.body = std::move(json).Take();
    return response;
  }
  http::Response response;
  response.body = R"({"status":"ready"})";
  if (readiness.replicas > 0) {
    response.body = fmt::format(R"({{"status":"ready","replicas":{},"replicas_ready":{}}})",
                                readiness.replicas, readiness.replicas_ready);
  }
  return response;
}

}  // namespace bouquet::ivy
