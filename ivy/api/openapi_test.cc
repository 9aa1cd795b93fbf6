#include "ivy/api/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "ivy/api/openai.h"
#include "ivy/api/tei.h"

namespace bouquet::ivy::api {
namespace {

using ::testing::ElementsAre;

std::vector<Endpoint> Endpoints() {
  return {
      {Method::kPost, "/v1/embeddings", EndpointKind::kData, Dialect::kOpenAi, "a",
       &kOpenAiEmbeddings.body, kOpenAiEmbeddings.answer_schema},
      {Method::kGet, "/", EndpointKind::kHealth, Dialect::kOpenAi, "b", nullptr},
      {Method::kPost, "/", EndpointKind::kData, Dialect::kTei, "c", &kTeiEmbed.body,
       kTeiEmbed.answer_schema},
      {Method::kGet, "/v1/models/*", EndpointKind::kCatalog, Dialect::kOpenAi, "d", nullptr},
  };
}

simdjson::dom::element At(const JsonDocument& document, std::string_view pointer) {
  simdjson::dom::element found;
  EXPECT_EQ(document.root().at_pointer(pointer).get(found), simdjson::SUCCESS) << pointer;
  return found;
}

TEST(OpenApiTest, HoldsEveryFieldOfTheParsersTables) {
  const Result<JsonDocument> document =
      JsonDocument::Parse(RenderOpenApi(Endpoints(), "1.2.3", false), "document");
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  for (const auto& [path, dialect] :
       {std::pair("~1v1~1embeddings", &kOpenAiEmbeddings), std::pair("~1", &kTeiEmbed)}) {
    const simdjson::dom::object properties =
        At(*document, "/paths/" + std::string(path) +
                          "/post/requestBody/content/application~1json/schema/properties");
    EXPECT_EQ(properties.size(), dialect->body.fields.size());
    for (const FieldSpec& field : dialect->body.fields) {
      simdjson::dom::element property;
      EXPECT_EQ(properties.at_key(field.name).get(property), simdjson::SUCCESS) << field.name;
    }
  }
}

TEST(OpenApiTest, PutsTheMethodsOfOnePathTogether) {
  const Result<JsonDocument> document =
      JsonDocument::Parse(RenderOpenApi(Endpoints(), "1", false), "document");
  ASSERT_TRUE(document.ok());
  At(*document, "/paths/~1/get/responses/503");
  At(*document, "/paths/~1/post/responses/422");
  At(*document, "/paths/~1v1~1models~1{id}/get/parameters/0");
  const simdjson::dom::object paths = At(*document, "/paths");
  EXPECT_EQ(paths.size(), 3U);
}

TEST(OpenApiTest, PromisesTheStatusesOfTheErrorTable) {
  const std::vector<Endpoint> endpoints = Endpoints();
  EXPECT_THAT(StatusesOf(endpoints[0], false),
              ElementsAre(200, 400, 404, 413, 415, 429, 500, 501, 503, 504));
  EXPECT_THAT(StatusesOf(endpoints[2], true),
              ElementsAre(200, 400, 401, 404, 413, 415, 422, 429, 500, 501, 503, 504));
  EXPECT_THAT(StatusesOf(endpoints[1], true), ElementsAre(200, 503));
  EXPECT_THAT(StatusesOf(endpoints[3], false), ElementsAre(200, 404));
}

}  // namespace
}  // namespace bouquet::ivy::api
