#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "ivy/http/server.h"

namespace bouquet::cli {

/// Metrics and probes of a process that serves no HTTP of its own: GET /metrics, /health/live,
/// /health/ready.
class MetricsServer {
 public:
  /// `address` is HOST:PORT; port 0 is any free one. `is_ready` is called by probes, from a thread
  /// of the server. `metrics` must outlive it. Error: kInvalidArgument for an address that is none;
  /// of http::Server::Start.
  static Result<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                      std::function<bool()> is_ready,
                                                      Metrics& metrics);

  uint16_t port() const { return server_->port(); }

 private:
  explicit MetricsServer(std::function<bool()> is_ready, Metrics& metrics)
      : is_ready_(std::move(is_ready)), metrics_(metrics) {}

  ivy::http::RouteTable Routes();

  const std::function<bool()> is_ready_;
  Metrics& metrics_;
  const ivy::http::ApiKeys open_;
  std::unique_ptr<ivy::http::Server> server_;
};

}  // namespace bouquet::cli
