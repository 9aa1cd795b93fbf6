#include "ivy/http/cors.h"

#include <algorithm>

namespace bouquet::ivy::http {
namespace {

constexpr std::string_view kExposed =
    "x-request-id, x-bouquet-truncated, x-compute-type, x-compute-time, x-compute-characters, "
    "x-compute-tokens, x-total-time, x-tokenization-time, x-queue-time, x-inference-time, "
    "server-timing, retry-after";

}  // namespace

bool Cors::Allows(std::string_view origin) const {
  return std::any_of(origins_.begin(), origins_.end(), [&](const std::string& allowed) {
    return allowed == "*" || EqualsIgnoringCase(allowed, origin);
  });
}

void Cors::AppendFields(const Request& request, std::string& fields) const {
  const std::string_view origin = request.Find("origin");
  if (!enabled() || origin.empty() || !Allows(origin)) {
    return;
  }
  fields += "access-control-allow-origin: ";
  fields += origin;
  fields += "\r\nvary: origin\r\naccess-control-expose-headers: ";
  fields += kExposed;
  fields += "\r\n";
}

std::optional<Response> Cors::AnswerPreflight(std::string_view method,
                                              const Request& request) const {
  if (!enabled() || method != "OPTIONS" || request.Find("access-control-request-method").empty()) {
    return std::nullopt;
  }
  Response response;
  response.status = 204;
  response.fields =
      "access-control-allow-methods: GET, POST\r\n"
      "access-control-allow-headers: authorization, content-type, x-request-id, traceparent\r\n"
      "access-control-max-age: 600\r\n";
  return response;
}

}  // namespace bouquet::ivy::http
