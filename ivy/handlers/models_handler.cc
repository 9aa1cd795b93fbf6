#include "ivy/handlers/models_handler.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "ivy/http/route_table.h"

namespace bouquet::ivy {
namespace {

void WriteModel(std::string_view id, int64_t created, JsonWriter& json) {
  json.BeginObject().Field("id", id).Field("object", "model").Field("created", created);
  json.Field("owned_by", "bouquet").EndObject();
}

}  // namespace

http::Response ModelsHandler::List() const {
  JsonWriter json;
  json.BeginObject().Field("object", "list").Key("data").BeginArray();
  for (const auto& entry : models_.entries()) {
    WriteModel(entry->name(), created_, json);
    for (const std::string& alias : entry->aliases()) {
      WriteModel(alias, created_, json);
    }
  }
  json.EndArray().EndObject();
  http::Response response;
  response.body = std::move(json).Take();
  return response;
}

http::Response ModelsHandler::One(const http::Request& request) const {
  const std::optional<std::string> id = http::PercentDecode(request.rest);
  const Result<ModelEntry*> found = models_.Find(id.value_or(std::string(request.rest)));
  if (!found.ok()) {
    return http::ErrorResponse(api::ErrorFrom(found.status()), api::Dialect::kOpenAi,
                               request.request_id);
  }
  JsonWriter json;
  WriteModel(*id, created_, json);
  http::Response response;
  response.body = std::move(json).Take();
  return response;
}

}  // namespace bouquet::ivy
