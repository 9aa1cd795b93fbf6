#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ivy/api/dialect.h"
#include "ivy/api/field_table.h"

namespace bouquet::ivy::api {

enum class Method : uint8_t { kGet, kPost };  // HEAD is served as GET

constexpr std::string_view MethodName(Method method) {
  return method == Method::kGet ? "GET" : "POST";
}

/// What kind of answer an endpoint gives; decides which errors it can answer.
enum class EndpointKind : uint8_t {
  kHealth,    // open; 200 or 503
  kDocument,  // open; always 200
  kCatalog,   // needs a key where keys are set: models, info
  kData,      // needs a key where keys are set; reads a body, counts as a request in progress
};

/// One line of the API: routing, metrics and the OpenAPI document all come from it.
struct Endpoint {
  Method method = Method::kGet;
  /// As clients write it. A trailing "/*" takes any rest, which may hold slashes.
  std::string path;
  EndpointKind kind = EndpointKind::kDocument;
  Dialect dialect = Dialect::kOpenAi;  // of errors
  std::string_view summary;
  const BodySpec* body = nullptr;       // kData
  std::string_view answer_schema = {};  // of a 200, as a JSON text; empty: not described
};

}  // namespace bouquet::ivy::api
