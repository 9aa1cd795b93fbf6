#include "cli/metrics_server.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/address.h"

namespace bouquet::cli {
namespace {

using ivy::api::EndpointKind;
using ivy::api::Method;
namespace http = ivy::http;

constexpr int64_t kMaxConnections = 64;  // of a scraper and some probes

Result<http::ServerOptions> OptionsOf(const std::string& address) {
  http::ServerOptions options;
  ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address, "--metrics-listen"));
  if (parsed.is_unix()) {
    return InvalidArgument(fmt::format("--metrics-listen must be HOST:PORT: {}", address),
                           "--metrics-listen");
  }
  options.host = parsed.host;
  options.port = parsed.port;
  options.limits.max_connections = kMaxConnections;
  return options;
}

/// A handler that needs not wait.
template <class Answer>
http::Handler AtOnce(Answer answer) {
  return [answer = std::move(answer)](http::Request&) -> boost::asio::awaitable<http::Response> {
    http::Response response;
    answer(response);
    co_return response;
  };
}

}  // namespace

http::RouteTable MetricsServer::Routes() {
  http::RouteTable routes;
  routes.Add({.endpoint = {Method::kGet, "/metrics", EndpointKind::kDocument},
              .handler = AtOnce([this](http::Response& response) {
                server_->PublishGauges();
                response.content_type = Metrics::kContentType;
                response.body = metrics_.Render();
              })});
  routes.Add({.endpoint = {Method::kGet, "/health/live", EndpointKind::kDocument},
              .handler = AtOnce(
                  [](http::Response& response) { response.body = R"({"status":"live"})"; })});
  routes.Add({.endpoint = {Method::kGet, "/health/ready", EndpointKind::kHealth},
              .handler = AtOnce([this](http::Response& response) {
                const bool ready = is_ready_();
                response.status = ready ? 200 : 503;
                response.body = ready ? R"({"status":"ready"})" : R"({"status":"not_ready"})";
              })});
  return routes;
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                            std::function<bool()> is_ready,
                                                            Metrics& metrics) {
  ASSIGN_OR_RETURN(const http::ServerOptions options, OptionsOf(address));
  std::unique_ptr<MetricsServer> started(new MetricsServer(std::move(is_ready), metrics));
  started->server_ =
      std::make_unique<http::Server>(options, started->Routes(), started->open_, metrics);
  RETURN_IF_ERROR(started->server_->Start());
  return started;
}

}  // namespace bouquet::cli
