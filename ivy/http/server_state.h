#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/snapshot.h"
#include "ivy/http/api_keys.h"
#include "ivy/http/cors.h"
#include "ivy/http/http_metrics.h"
#include "ivy/http/route_table.h"
#include "ivy/http/server.h"

namespace bouquet::ivy::http {

class Connection;

/// What all connections of a server share.
struct ServerState {
  ServerState(ServerOptions server_options, RouteTable table, const ApiKeys& api_keys,
              Metrics& registry)
      : options(std::move(server_options)),
        limits(options.limits),
        routes(std::move(table)),
        keys(api_keys),
        cors(options.cors_origins),
        metrics(registry, routes) {}

  const ServerOptions options;
  Snapshot<ServerLimits> limits;
  const RouteTable routes;
  const ApiKeys& keys;
  const Cors cors;
  HttpMetrics metrics;

  std::atomic<int64_t> connections = 0;
  std::atomic<int64_t> exchanges = 0;      // header read, answer not yet written
  std::atomic<int64_t> data_requests = 0;  // handlers of data routes under way
  std::atomic<int64_t> body_bytes = 0;     // of bodies over 64 KiB
  std::atomic<bool> refusing = false;

  // Woken when an exchange ends while the server refuses new ones.
  std::mutex idle_mutex;
  std::condition_variable idle_changed;
};

/// One HTTP thread: its loop, and what its connections share without locks.
struct Worker {
  Worker() : id_source(std::random_device{}()) {}

  std::list<Connection*> connections;
  std::string date;  // an HTTP date, renewed by the sweep
  std::mt19937_64 id_source;
  /// Last, so that it goes first: the coroutines it destroys use what is above.
  boost::asio::io_context loop{1};
};

}  // namespace bouquet::ivy::http
