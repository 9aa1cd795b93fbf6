#include "bench/load/server_facts.h"

#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "bench/load/client_session.h"

namespace bouquet::bench {
namespace {

namespace asio = boost::asio;
using simdjson::dom::element;

bool IsGone(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded;
}

std::string TextOf(const Result<std::string>& page) {
  return page.ok() && simdjson::validate_utf8(*page) ? *page : std::string();
}

/// {"info": "…", "models": "…"}: the pages as texts, empty where there is none.
asio::awaitable<Result<std::string>> FetchPages(Clients& clients) {
  Result<std::string> info = co_await clients[0]->Fetch("/info");
  if (!info.ok() && IsGone(info.status())) {
    co_return info.status();
  }
  Result<std::string> models = co_await clients[0]->Fetch("/v1/models");
  JsonWriter json;
  json.BeginObject().Field("info", TextOf(info)).Field("models", TextOf(models)).EndObject();
  co_return std::move(json).Take();
}

std::string StringIn(simdjson::simdjson_result<element> found) {
  std::string_view text;
  return found.get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

int64_t IntegerIn(simdjson::simdjson_result<element> found) {
  int64_t number = 0;
  return found.get_int64().get(number) == simdjson::SUCCESS && number > 0 ? number : 0;
}

}  // namespace

ServerFacts ReadServerFacts(std::string_view info, std::string_view models) {
  ServerFacts facts;
  if (const Result<JsonDocument> page = JsonDocument::Parse(info, "/info");
      page.ok() && page->root().is_object()) {
    const element root = page->root();
    facts.info = info;
    facts.model = StringIn(root["served_model_name"]);
    if (facts.model.empty()) {
      facts.model = StringIn(root["model_id"]);
    }
    facts.version = StringIn(root["version"]);
    facts.max_input_tokens = IntegerIn(root["max_input_length"]);
    facts.vocabulary_rows = IntegerIn(root["bouquet"]["models"].at(0)["vocabulary_rows"]);
  }
  if (const Result<JsonDocument> page = JsonDocument::Parse(models, "/v1/models"); page.ok()) {
    const auto first = page->root()["data"].at(0);
    if (facts.model.empty()) {
      facts.model = StringIn(first["id"]);
    }
    if (facts.max_input_tokens == 0) {
      facts.max_input_tokens = IntegerIn(first["max_model_len"]);
    }
  }
  return facts;
}

Result<ServerFacts> AskServerFacts(const client::ClientOptions& server,
                                   const ClientProcessHooks& hooks) {
  ASSIGN_OR_RETURN(const std::vector<std::string> answers,
                   RunClientProcesses(
                       1,
                       [&server](size_t /*index*/, ParentChannel& /*parent*/) {
                         return RunSession({server}, FetchPages);
                       },
                       hooks));
  ASSIGN_OR_RETURN(const JsonDocument pages, JsonDocument::Parse(answers.front(), "pages"));
  return ReadServerFacts(StringIn(pages.root()["info"]), StringIn(pages.root()["models"]));
}

}  // namespace bouquet::bench
