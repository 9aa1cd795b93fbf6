#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "ivy/http/api_keys.h"
#include "ivy/http/route_table.h"

namespace bouquet::ivy::http {

/// What may change while the server runs.
struct ServerLimits {
  int64_t max_body_bytes = 16 << 20;
  int64_t max_header_bytes = 64 << 10;  // request line included
  int64_t max_connections = 4096;
  int64_t max_concurrent_requests = 1024;
  /// Bytes of bodies over 64 KiB that all connections together may hold.
  int64_t max_buffered_bytes = 256 << 20;
  std::chrono::milliseconds read_timeout{30'000};   // first byte to last
  std::chrono::milliseconds write_timeout{30'000};  // and a second for every…
  int64_t slowest_bytes_per_second = 100'000;
  std::chrono::milliseconds idle_timeout{75'000};
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  int num_threads = 1;
  std::vector<std::string> cors_origins;
  ServerLimits limits;
};

/// The HTTP/1.1 edge: sockets, limits, timeouts, keys. Each of `num_threads` threads runs the
/// connections that it was given and their handler coroutines. Knows no JSON of requests.
///
/// Thread: the methods may be called from any thread but the server's own.
class Server {
 public:
  /// `keys` and `metrics` must outlive the server.
  Server(ServerOptions options, RouteTable routes, const ApiKeys& keys, Metrics& metrics);
  /// Stops. Handlers that still wait are destroyed: what they wait for must not resume them later.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Binds, listens and starts the threads. Error: kAlreadyExists when the port is in use,
  /// kInvalidArgument when the host or the port cannot be bound.
  Status Start();
  /// The port in use, once started.
  uint16_t port() const;

  /// A request is held to the limits that were in force when it began. Thread: any.
  void SetLimits(const ServerLimits& limits);

  /// From now on requests to data routes are answered 503; those already being read or answered
  /// finish. Every answer closes its connection.
  void RefuseNewRequests();
  /// After RefuseNewRequests: waits until no request is being read or answered; false when `wait`
  /// was not enough.
  bool WaitUntilIdle(std::chrono::milliseconds wait);
  /// Closes everything and joins the threads.
  void Stop();

  /// Sets the gauges of the metrics; call it before they are rendered. Thread: any.
  void PublishGauges();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bouquet::ivy::http
