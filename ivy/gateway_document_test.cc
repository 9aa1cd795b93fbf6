// Holds the OpenAPI document against the server: every status it promises is answered once here,
// and every field it names is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/json.h"
#include "ivy/gateway.h"
#include "ivy/testing/fake_encoder.h"
#include "ivy/testing/raw_client.h"
#include "ivy/testing/scrape.h"

namespace bouquet::ivy {
namespace {

using ivy::testing::Ask;
using ivy::testing::FakeEncoder;
using ivy::testing::FakeModel;
using ivy::testing::Get;
using ivy::testing::Post;
using ivy::testing::RawResponse;
using simdjson::dom::element;
using simdjson::dom::key_value_pair;
using simdjson::dom::object;

constexpr std::string_view kKey = "Authorization: Bearer key\r\n";
using Promises = std::map<std::pair<std::string, std::string>, std::set<int>>;  // (method, path)

class GatewayDocumentTest : public ::testing::Test {
 protected:
  GatewayDocumentTest() {
    Result<std::unique_ptr<Gateway>> gateway = Gateway::Create(
        {.port = 0, .max_inputs_per_request = 2, .strict_fields = true, .api_keys = "key"},
        {FakeModel(encoder_, 4)}, metrics_);
    CHECK(gateway.ok());
    gateway_ = std::move(gateway).value();
    CHECK(gateway_->Start().ok());
  }

  const JsonDocument& Document() {
    if (!document_) {
      Result<JsonDocument> parsed =
          JsonDocument::Parse(Ask(gateway_->port(), Get("/openapi.json")).body, "document");
      CHECK(parsed.ok());
      document_ = std::make_unique<JsonDocument>(std::move(parsed).value());
    }
    return *document_;
  }

  Promises Promised() {
    Promises promises;
    for (const key_value_pair& path : object(Document().root()["paths"])) {
      for (const key_value_pair& method : object(path.value)) {
        for (const key_value_pair& status : object(method.value["responses"])) {
          promises[{std::string(method.key), std::string(path.key)}].insert(
              ivy::testing::NumberIn<int>(status.key));
        }
      }
    }
    return promises;
  }

  /// All the ways to be answered on a data route.
  std::set<int> StatusesOfData(const std::string& path, const std::string& field,
                               const std::string& value = R"("a")") {
    std::set<int> seen;
    const auto post = [&](const std::string& body, std::string_view headers = kKey) {
      seen.insert(Ask(gateway_->port(), Post(path, body, headers)).status);
    };
    const std::string begin = "{\"" + field + "\":";
    const std::string good = begin + value + "}";
    post(good);
    post(good, "");
    post("{");
    post(begin + "7}");
    post(begin + "[" + value + "," + value + "," + value + "]}");
    post(begin + value + ",\"model\":\"other\"}");
    post(good, std::string(kKey) + "Content-Type: text/plain\r\n");
    for (const Status& status : {ResourceExhausted("x"), Internal("x"), Unimplemented("x"),
                                 OutOfRange("x"), DeadlineExceeded("x"), Unavailable("x")}) {
      encoder_.FailWith(status);
      post(good);
    }
    encoder_.FailWith(Status());
    return seen;
  }

  FakeEncoder encoder_{4};
  Metrics metrics_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<JsonDocument> document_;
};

TEST_F(GatewayDocumentTest, PromisesTheStatusesThatAreAnsweredAndNoOther) {
  const Promises promised = Promised();
  Promises seen;
  const auto get = [&](const std::string& path, const std::string& asked,
                       std::string_view headers) {
    seen[{"get", path}].insert(Ask(gateway_->port(), Get(asked, headers)).status);
  };
  for (const bool ready : {false, true}) {
    if (ready) {
      gateway_->SetReady("fake-model", {});
    }
    for (const std::string path : {"/", "/health", "/health/ready", "/health/live", "/ping",
                                   "/metrics", "/openapi.json", "/api-doc/openapi.json"}) {
      get(path, path, "");
    }
  }
  for (const std::string path : {"/info", "/v1/models"}) {
    get(path, path, kKey);
    get(path, path, "");
  }
  get("/v1/models/{id}", "/v1/models/fake-model", kKey);
  get("/v1/models/{id}", "/v1/models/other", kKey);
  get("/v1/models/{id}", "/v1/models/fake-model", "");
  for (const std::string path : {"/v1/embeddings", "/embeddings"}) {
    seen[{"post", path}] = StatusesOfData(path, "input");
  }
  for (const std::string path : {"/embed", "/", "/tokenize", "/tei/tokenize"}) {
    seen[{"post", path}] = StatusesOfData(path, "inputs");
  }
  seen[{"post", "/vllm/tokenize"}] = StatusesOfData("/vllm/tokenize", "prompt");
  seen[{"post", "/decode"}] = StatusesOfData("/decode", "ids", "[1]");
  seen[{"post", "/detokenize"}] = StatusesOfData("/detokenize", "tokens", "[1]");
  EXPECT_EQ(seen, promised);
}

/// A value that the schema of a field allows.
std::string ExampleOf(object schema) {
  element part;
  if (schema.at_key("oneOf").get(part) == simdjson::SUCCESS ||
      schema.at_key("anyOf").get(part) == simdjson::SUCCESS) {
    return std::string_view(part.at(0)["type"]) == "string" ? R"("text")" : "[1]";
  }
  if (schema.at_key("enum").get(part) == simdjson::SUCCESS) {
    return "\"" + std::string(std::string_view(part.at(0))) + "\"";
  }
  const std::string_view type(schema["type"].at(0));
  return type == "string" ? R"("query")" : type == "boolean" ? "true" : "1";
}

TEST_F(GatewayDocumentTest, NamesTheFieldsThatAreReadAndNoOther) {
  gateway_->SetReady("fake-model", {});
  for (const key_value_pair& path : object(Document().root()["paths"])) {
    element properties;
    if (path.value.at_pointer("/post/requestBody/content/application~1json/schema/properties")
            .get(properties) != simdjson::SUCCESS) {
      continue;
    }
    const std::string route(path.key);
    const std::string required(std::string_view(
        path.value.at_pointer("/post/requestBody/content/application~1json/schema/required/0")));
    const std::string also = ",\"" + required + "\":" + ExampleOf(properties[required]);
    for (const key_value_pair& property : object(properties)) {
      const std::string name(property.key);
      std::string body = "{\"" + name + "\":" + ExampleOf(property.value);
      std::string wrong = "{\"" + name + "\":{}";
      if (name != required) {
        body += also;
        wrong += also;
      }
      // Accepted with a value that fits (--strict-fields would refuse an unknown one)…
      const RawResponse accepted = Ask(gateway_->port(), Post(route, body + "}", kKey));
      const bool unknown_model = name == "model" && accepted.status == 404;
      EXPECT_TRUE(accepted.status == 200 || unknown_model) << route << body << accepted.body;
      // …and looked at: one that does not fit is refused by its name.
      const RawResponse refused = Ask(gateway_->port(), Post(route, wrong + "}", kKey));
      EXPECT_GE(refused.status, 400) << route << wrong;
      EXPECT_THAT(refused.body, ::testing::HasSubstr(name)) << route << wrong;
    }
    const RawResponse unknown =
        Ask(gateway_->port(), Post(route, "{\"surprise\":1" + also + "}", kKey));
    EXPECT_THAT(unknown.body, ::testing::HasSubstr("--strict-fields")) << route;
  }
}

}  // namespace
}  // namespace bouquet::ivy
