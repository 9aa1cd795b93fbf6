#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "client/embed_client.h"

namespace bouquet::client {

/// An answer as it came, or why none did.
struct HttpAnswer {
  Failure failure = Failure::kNone;  // never kStatus or kMalformed: nobody has looked yet
  std::string detail;                // of a failure, for messages
  int32_t status = 0;
  bool has_retry_after = false;
  int32_t retry_after_seconds = 0;
  bool reconnected = false;
  TimePoint received;
  std::string body;
};

/// Kept-alive connections to one HTTP/1.1 server: as many as there are exchanges at once, the one
/// that was used last first. A kept connection that the server closed meanwhile is replaced once,
/// since the request cannot have been answered; the time of that counts.
///
/// Thread: the executor's one thread.
class HttpExchange {
 public:
  /// Resolves the host, which blocks. Error: kInvalidArgument.
  static Result<std::unique_ptr<HttpExchange>> Create(const boost::asio::any_io_executor& executor,
                                                      const ClientOptions& options);
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  /// Opens `count` connections and keeps them. Error: kUnavailable, kDeadlineExceeded.
  boost::asio::awaitable<Status> Connect(size_t count);
  /// Sends `request`, head and body, which must outlive the call.
  boost::asio::awaitable<HttpAnswer> Send(std::string_view request);

 private:
  struct Connection;
  using Endpoints = boost::asio::ip::tcp::resolver::results_type;

  HttpExchange(const boost::asio::any_io_executor& executor, const ClientOptions& options,
               Endpoints endpoints);
  boost::asio::awaitable<Result<std::unique_ptr<Connection>>> Open();
  boost::asio::awaitable<HttpAnswer> SendOver(Connection& connection, std::string_view request);

  boost::asio::any_io_executor executor_;
  const ClientOptions options_;
  const Endpoints endpoints_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace bouquet::client
