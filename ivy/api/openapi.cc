#include "ivy/api/openapi.h"

#include <set>
#include <string>
#include <vector>

#include "base/json_writer.h"

namespace bouquet::ivy::api {
namespace {

// Failures by kind of endpoint. What can happen on every connection before a route is known (408,
// 417, 431, malformed HTTP) belongs to the protocol and is not repeated here.
constexpr ErrorKind kCatalogErrors[] = {ErrorKind::kUnknownModel};
constexpr ErrorKind kHealthErrors[] = {ErrorKind::kUnavailable};
constexpr ErrorKind kDataErrors[] = {
    ErrorKind::kMalformedBody,    ErrorKind::kInvalidValue, ErrorKind::kEmptyInput,
    ErrorKind::kTooLarge,         ErrorKind::kUnknownModel, ErrorKind::kUnsupportedMediaType,
    ErrorKind::kOverCapacity,     ErrorKind::kInternal,     ErrorKind::kUnimplemented,
    ErrorKind::kDeadlineExceeded, ErrorKind::kUnavailable,
};

std::span<const ErrorKind> ErrorsOf(const Endpoint& endpoint) {
  switch (endpoint.kind) {
    case EndpointKind::kHealth: return kHealthErrors;
    case EndpointKind::kDocument: return {};
    case EndpointKind::kCatalog:
      return endpoint.path.ends_with("/*") ? std::span<const ErrorKind>(kCatalogErrors)
                                           : std::span<const ErrorKind>();
    case EndpointKind::kData: return kDataErrors;
  }
  return {};
}

bool NeedsKey(EndpointKind kind) {
  return kind == EndpointKind::kCatalog || kind == EndpointKind::kData;
}

std::string_view StatusMeaning(int status) {
  switch (status) {
    case 200: return "The answer.";
    case 400: return "The body is malformed or a value is invalid.";
    case 401: return "No valid key.";
    case 404: return "The model is not served.";
    case 413: return "Over a limit that the operator can raise.";
    case 415: return "The body is not application/json.";
    case 422: return "A value is invalid.";
    case 429: return "Over capacity; Retry-After says when to try again.";
    case 500: return "Internal error, or a row that is not finite.";
    case 501: return "The model does not offer this.";
    case 503: return "Not ready, or shutting down.";
    case 504: return "The deadline passed.";
    default: return "Error.";
  }
}

void WriteInputsSchema(const FieldSpec& field, JsonWriter& json) {
  const std::string text =
      field.may_be_empty ? R"({"type":"string"})" : R"({"type":"string","minLength":1})";
  const std::string ids = field.may_be_empty
                              ? R"({"type":"array","items":{"type":"integer","minimum":0}})"
                              : R"({"type":"array","minItems":1,"items":{"type":"integer",)"
                                R"("minimum":0}})";
  const auto list_of = [](const std::string& item) {
    return R"({"type":"array","minItems":1,"items":)" + item + "}";
  };
  std::vector<std::string> shapes;
  if (TakesTexts(field.mix)) {
    shapes.push_back(text);
  }
  if (TakesIds(field.mix)) {
    shapes.push_back(ids);
  }
  switch (field.mix) {
    case InputMix::kUniform:
      shapes.push_back(list_of(text));
      shapes.push_back(list_of(ids));
      break;
    case InputMix::kMixed:
      shapes.push_back(list_of(R"({"anyOf":[)" + text + "," + ids + "]}"));
      break;
    case InputMix::kTexts: shapes.push_back(list_of(text)); break;
    case InputMix::kIdLists: shapes.push_back(list_of(ids)); break;
    case InputMix::kText:
    case InputMix::kIds: break;
  }
  json.Key(field.mix == InputMix::kMixed ? "anyOf" : "oneOf").BeginArray();
  for (const std::string& shape : shapes) {
    json.Raw(shape);
  }
  json.EndArray();
}

std::string_view TypeName(FieldKind kind) {
  switch (kind) {
    case FieldKind::kString: return "string";
    case FieldKind::kBoolean: return "boolean";
    case FieldKind::kInteger: return "integer";
    case FieldKind::kChoice: return "string";
    case FieldKind::kInputs: return "";
  }
  return "";
}

void WriteField(const FieldSpec& field, JsonWriter& json) {
  json.Key(field.name).BeginObject().Field("description", field.description);
  if (field.kind == FieldKind::kInputs) {
    WriteInputsSchema(field, json);
  } else if (field.kind == FieldKind::kChoice) {
    json.Key("enum").BeginArray();
    for (const std::string_view choice : field.choices) {
      json.Value(choice);
    }
    json.Null().EndArray();
  } else {
    json.Key("type").BeginArray().Value(TypeName(field.kind)).Value("null").EndArray();
    if (field.kind == FieldKind::kInteger) {
      json.Field("minimum", field.minimum).Field("maximum", field.maximum);
    }
  }
  json.EndObject();
}

void WriteBody(const BodySpec& body, JsonWriter& json) {
  json.Key("requestBody").BeginObject().Field("required", true).Key("content").BeginObject();
  json.Key("application/json").BeginObject().Key("schema").BeginObject();
  json.Field("type", "object").Key("required").BeginArray();
  for (const FieldSpec& field : body.fields) {
    if (field.required) {
      json.Value(field.name);
    }
  }
  json.EndArray().Key("properties").BeginObject();
  for (const FieldSpec& field : body.fields) {
    WriteField(field, json);
  }
  json.EndObject().EndObject().EndObject().EndObject().EndObject();
}

void WriteResponses(const Endpoint& endpoint, bool has_keys, JsonWriter& json) {
  json.Key("responses").BeginObject();
  for (const int status : StatusesOf(endpoint, has_keys)) {
    json.Key(std::to_string(status)).BeginObject().Field("description", StatusMeaning(status));
    if (status == 200 && !endpoint.answer_schema.empty()) {
      json.Key("content").BeginObject().Key("application/json").BeginObject();
      json.Key("schema").Raw(endpoint.answer_schema).EndObject().EndObject();
    } else if (status != 200) {
      const std::string schema = "{\"$ref\":\"#/components/schemas/" +
                                 std::string(DialectName(endpoint.dialect)) + "_error\"}";
      json.Key("content").BeginObject().Key("application/json").BeginObject();
      json.Key("schema").Raw(schema).EndObject().EndObject();
    }
    json.EndObject();
  }
  json.EndObject();
}

/// "/v1/models/*" → "/v1/models/{id}".
std::string DocumentPath(std::string_view path) {
  return path.ends_with("/*") ? std::string(path.substr(0, path.size() - 1)) + "{id}"
                              : std::string(path);
}

void WriteEndpoint(const Endpoint& endpoint, bool has_keys, JsonWriter& json) {
  json.Key(endpoint.method == Method::kGet ? "get" : "post").BeginObject();
  json.Field("summary", endpoint.summary);
  if (endpoint.path.ends_with("/*")) {
    json.Key("parameters").BeginArray().BeginObject().Field("name", "id").Field("in", "path");
    json.Field("required", true).Key("schema").Raw(R"({"type":"string"})").EndObject().EndArray();
  }
  if (endpoint.body != nullptr) {
    WriteBody(*endpoint.body, json);
  }
  WriteResponses(endpoint, has_keys, json);
  if (has_keys && NeedsKey(endpoint.kind)) {
    json.Key("security").Raw(R"([{"key":[]}])");
  }
  json.EndObject();
}

constexpr std::string_view kErrorSchemas =
    R"("openai_error":{"type":"object","properties":{"error":{"type":"object","properties":{)"
    R"("message":{"type":"string"},"type":{"type":"string"},"param":{"type":["string","null"]},)"
    R"("code":{"type":["string","null"]}}}}},)"
    R"("tei_error":{"type":"object","properties":{"error":{"type":"string"},)"
    R"("error_type":{"type":"string"}}})";

}  // namespace

std::vector<int> StatusesOf(const Endpoint& endpoint, bool has_keys) {
  std::set<int> statuses = {200};
  for (const ErrorKind kind : ErrorsOf(endpoint)) {
    statuses.insert(HttpStatus(kind, endpoint.dialect));
  }
  if (has_keys && NeedsKey(endpoint.kind)) {
    statuses.insert(HttpStatus(ErrorKind::kUnauthorized, endpoint.dialect));
  }
  return {statuses.begin(), statuses.end()};
}

std::string RenderOpenApi(std::span<const Endpoint> endpoints, std::string_view version,
                          bool has_keys) {
  JsonWriter json;
  json.BeginObject().Field("openapi", "3.1.0").Key("info").BeginObject();
  json.Field("title", "Bouquet").Field("version", version).EndObject().Key("paths").BeginObject();
  for (size_t i = 0; i < endpoints.size(); ++i) {
    // Endpoints of one path stand side by side in the table.
    const bool same_as_last = i > 0 && endpoints[i - 1].path == endpoints[i].path;
    const bool same_as_next =
        i + 1 < endpoints.size() && endpoints[i + 1].path == endpoints[i].path;
    if (!same_as_last) {
      json.Key(DocumentPath(endpoints[i].path)).BeginObject();
    }
    WriteEndpoint(endpoints[i], has_keys, json);
    if (!same_as_next) {
      json.EndObject();
    }
  }
  json.EndObject().Key("components").BeginObject();
  json.Key("schemas").Raw("{" + std::string(kErrorSchemas) + "}");
  if (has_keys) {
    json.Key("securitySchemes").Raw(R"({"key":{"type":"http","scheme":"bearer"}})");
  }
  json.EndObject().EndObject();
  return std::move(json).Take();
}

}  // namespace bouquet::ivy::api
