#include "ivy/gateway.h"

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "base/snapshot.h"
#include "ivy/api/openai.h"
#include "ivy/api/openapi.h"
#include "ivy/api/tei.h"
#include "ivy/api/text_dialect.h"
#include "ivy/handlers/embed_handler.h"
#include "ivy/handlers/health_handler.h"
#include "ivy/handlers/info_handler.h"
#include "ivy/handlers/models_handler.h"
#include "ivy/handlers/text_handler.h"
#include "ivy/http/server.h"

namespace bouquet::ivy {
namespace {

using api::Dialect;
using api::Endpoint;
using api::EndpointKind;
using api::Method;
using boost::asio::awaitable;

http::ServerLimits ServerLimitsOf(const Config& config) {
  using std::chrono::milliseconds;
  http::ServerLimits limits;
  limits.max_body_bytes = config.max_body_bytes;
  limits.max_header_bytes = config.max_header_bytes;
  limits.max_connections = config.max_connections;
  limits.max_concurrent_requests = config.max_concurrent_requests;
  limits.max_buffered_bytes = config.max_buffered_bytes;
  limits.read_timeout = milliseconds(config.read_timeout_ms);
  limits.write_timeout = milliseconds(config.write_timeout_ms);
  limits.idle_timeout = milliseconds(config.idle_timeout_ms);
  return limits;
}

http::ServerOptions ServerOptionsOf(const Config& config) {
  http::ServerOptions options;
  options.host = config.host;
  options.port = static_cast<uint16_t>(config.port);
  options.num_threads = config.http_threads;
  options.cors_origins = config.cors_allow_origins;
  options.limits = ServerLimitsOf(config);
  return options;
}

/// A handler that needs not wait.
template <class Answer>
http::Handler AtOnce(Answer answer) {
  return [answer = std::move(answer)](http::Request& request) -> awaitable<http::Response> {
    co_return answer(request);
  };
}

Result<std::vector<std::string>> ReadKeys(const Config& config) {
  return config.api_key_file.empty() ? http::ApiKeys::ParseList(config.api_keys)
                                     : http::ApiKeys::ReadFile(config.api_key_file);
}

}  // namespace

class Gateway::Impl {
 public:
  Impl(Config config, ModelTable models, std::vector<std::string> keys, Metrics& metrics)
      : config_(std::move(config)),
        models_(std::move(models)),
        keys_(std::move(keys)),
        metrics_(metrics),
        health_(models_),
        info_(models_, config_),
        models_handler_(models_, std::time(nullptr)),
        embed_(models_, config_, metrics),
        text_(models_, config_),
        server_(ServerOptionsOf(*config_.Current()), Routes(), keys_, metrics) {}

  std::shared_ptr<const Config> config() const { return config_.Current(); }
  void Reload(Config config, std::vector<std::string> keys) {
    server_.SetLimits(ServerLimitsOf(config));
    keys_.Replace(std::move(keys));
    config_.Replace(std::move(config));
  }
  const ModelTable& models() const { return models_; }
  HealthHandler& health() { return health_; }
  http::Server& server() { return server_; }

  /// Waits, unless the gateway is stopped meanwhile.
  void WaitForStop(std::chrono::milliseconds wait) {
    std::unique_lock lock(stop_mutex_);
    stop_changed_.wait_for(lock, wait, [this] { return stopped_; });
  }
  void EndWaits() {
    const std::lock_guard lock(stop_mutex_);
    stopped_ = true;
    stop_changed_.notify_all();
  }

 private:
  struct Line {
    Endpoint endpoint;
    http::Handler handler;
    std::string_view prefix;                       // that forces the dialect, if any
    const api::EmbedDialect* under_tei = nullptr;  // also served under /tei, in that dialect
  };

  std::vector<Line> Lines();
  http::RouteTable Routes();
  http::Handler Embed(const api::EmbedDialect& dialect) {
    return [this, &dialect](http::Request& request) { return embed_.Handle(dialect, request); };
  }
  http::Handler Text(const api::TextDialect& dialect) {
    return [this, &dialect](http::Request& request) { return text_.Handle(dialect, request); };
  }
  template <class AnyDialect>
  static Endpoint DataEndpoint(std::string path, std::string_view summary,
                               const AnyDialect& dialect) {
    return {Method::kPost, std::move(path), EndpointKind::kData,  dialect.dialect,
            summary,       &dialect.body,   dialect.answer_schema};
  }

  Snapshot<Config> config_;
  const ModelTable models_;
  http::ApiKeys keys_;
  Metrics& metrics_;
  HealthHandler health_;
  const InfoHandler info_;
  const ModelsHandler models_handler_;
  const EmbedHandler embed_;
  const TextHandler text_;
  std::string openapi_;
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stopped_ = false;
  http::Server server_;  // last: its threads use all of the above
};

/// The whole API, one line a route. Routes of one path stand side by side.
std::vector<Gateway::Impl::Line> Gateway::Impl::Lines() {
  const auto ready = AtOnce([this](const auto& request) { return health_.Ready(request); });
  const auto openapi = AtOnce([this](const auto&) {
    http::Response response;
    response.body = openapi_;
    return response;
  });
  const auto metrics = AtOnce([this](const auto&) {
    server_.PublishGauges();
    http::Response response;
    response.content_type = Metrics::kContentType;
    response.body = metrics_.Render();
    return response;
  });
  const EndpointKind metrics_kind =
      config()->protect_metrics ? EndpointKind::kCatalog : EndpointKind::kDocument;
  const api::EmbedDialect& openai = api::kOpenAiEmbeddings;
  const api::EmbedDialect& tei = api::kTeiEmbed;
  constexpr Method kGet = Method::kGet;
  const auto tokenize = [this](http::Request& request) { return text_.HandleTokenize(request); };
  return {
      {DataEndpoint("/v1/embeddings", "Embeddings", openai), Embed(openai), "/openai",
       &api::kTeiOpenAiEmbeddings},
      {DataEndpoint("/embeddings", "Embeddings", openai), Embed(openai), "/openai",
       &api::kTeiOpenAiEmbeddings},
      {DataEndpoint("/embed", "Embeddings, as bare rows", tei), Embed(tei), "/tei"},
      {DataEndpoint("/tokenize", "Tokens of texts; a body with \"prompt\" is read as vLLM does",
                    api::kTeiTokenize),
       tokenize},
      {DataEndpoint("/tei/tokenize", "Tokens of texts", api::kTeiTokenize),
       Text(api::kTeiTokenize)},
      {DataEndpoint("/vllm/tokenize", "Tokens of a text", api::kVllmTokenize),
       Text(api::kVllmTokenize)},
      {DataEndpoint("/decode", "Texts of tokens", api::kTeiDecode), Text(api::kTeiDecode), "/tei"},
      {DataEndpoint("/detokenize", "The text of tokens", api::kVllmDetokenize),
       Text(api::kVllmDetokenize), "/vllm"},
      {{kGet, "/", EndpointKind::kHealth, Dialect::kOpenAi, "Readiness"}, ready},
      {DataEndpoint("/", "Embeddings, as bare rows", tei), Embed(tei), "/tei"},
      {{kGet, "/health", EndpointKind::kHealth, Dialect::kOpenAi, "Readiness"}, ready, "/tei"},
      {{kGet, "/health/live", EndpointKind::kDocument, Dialect::kOpenAi, "Liveness"},
       AtOnce([this](const auto&) { return health_.Live(); })},
      {{kGet, "/health/ready", EndpointKind::kHealth, Dialect::kOpenAi, "Readiness"}, ready},
      {{kGet, "/ping", EndpointKind::kHealth, Dialect::kOpenAi, "Readiness"}, ready},
      {{kGet, "/info", EndpointKind::kCatalog, Dialect::kTei, "Models and limits"},
       AtOnce([this](const auto&) { return info_.Show(); }),
       "/tei"},
      {{kGet, "/v1/models", EndpointKind::kCatalog, Dialect::kOpenAi, "The served models"},
       AtOnce([this](const auto&) { return models_handler_.List(); }),
       "/openai"},
      {{kGet, "/v1/models/*", EndpointKind::kCatalog, Dialect::kOpenAi, "One served model"},
       AtOnce([this](const auto& request) { return models_handler_.One(request); }),
       "/openai"},
      {{kGet, "/metrics", metrics_kind, Dialect::kOpenAi, "Prometheus text"}, metrics},
      {{kGet, "/openapi.json", EndpointKind::kDocument, Dialect::kOpenAi, "This document"},
       openapi},
      {{kGet, "/api-doc/openapi.json", EndpointKind::kDocument, Dialect::kOpenAi, "This document"},
       openapi},
  };
}

http::RouteTable Gateway::Impl::Routes() {
  http::RouteTable table;
  std::vector<Endpoint> endpoints;
  for (const Line& line : Lines()) {
    const Endpoint& endpoint = line.endpoint;
    const std::string label = std::string(api::MethodName(endpoint.method)) + " " + endpoint.path;
    endpoints.push_back(endpoint);
    table.Add({endpoint, line.handler}, label);
    if (!line.prefix.empty()) {
      Endpoint forced = endpoint;
      forced.path = std::string(line.prefix) + endpoint.path;
      table.Add({forced, line.handler}, label);
    }
    if (line.under_tei != nullptr) {
      Endpoint forced = endpoint;
      forced.path = "/tei" + endpoint.path;
      table.Add({forced, Embed(*line.under_tei)}, label);
    }
  }
  openapi_ = api::RenderOpenApi(endpoints, config()->version, keys_.required());
  return table;
}

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::Create(Config config, std::vector<ServedModel> models,
                                                 Metrics& metrics) {
  RETURN_IF_ERROR(Validate(config));
  ASSIGN_OR_RETURN(ModelTable table, ModelTable::From(std::move(models)));
  ASSIGN_OR_RETURN(std::vector<std::string> keys, ReadKeys(config));
  return std::unique_ptr<Gateway>(new Gateway(
      std::make_unique<Impl>(std::move(config), std::move(table), std::move(keys), metrics)));
}

Status Gateway::Start() { return impl_->server().Start(); }

uint16_t Gateway::port() const { return impl_->server().port(); }

void Gateway::SetLoading(std::string_view model, std::string progress) {
  const Result<ModelEntry*> entry = impl_->models().Find(model);
  CHECK(entry.ok());
  (*entry)->SetLoading(std::move(progress));
}

void Gateway::SetReady(std::string_view model, EngineFacts facts) {
  const Result<ModelEntry*> entry = impl_->models().Find(model);
  CHECK(entry.ok());
  (*entry)->SetReady(std::move(facts));
}

Status Gateway::Reload(Config config) {
  RETURN_IF_ERROR(Validate(config));
  RETURN_IF_ERROR(CheckReload(*impl_->config(), config));
  ASSIGN_OR_RETURN(std::vector<std::string> keys, ReadKeys(config));
  impl_->Reload(std::move(config), std::move(keys));
  return Status();
}

void Gateway::Replace(ServedModel served) {
  const Result<ModelEntry*> entry = impl_->models().Find(served.name);
  CHECK(entry.ok());
  (*entry)->Replace(std::move(served));
}

bool Gateway::Drain() {
  const std::shared_ptr<const Config> config = impl_->config();
  impl_->health().BeginDrain();
  impl_->WaitForStop(std::chrono::milliseconds(config->drain_delay_ms));
  impl_->server().RefuseNewRequests();
  return impl_->server().WaitUntilIdle(std::chrono::milliseconds(config->drain_timeout_ms));
}

void Gateway::Stop() {
  impl_->EndWaits();
  impl_->server().Stop();
}

}  // namespace bouquet::ivy
