#include "client/http_exchange.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

namespace bouquet::client {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kUseAwaitable = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 64 << 10;

Failure FailureOf(const error_code& error, bool answer_began) {
  if (error == beast::error::timeout) {
    return Failure::kTimeout;
  }
  return answer_began ? Failure::kTruncated : Failure::kClosed;
}

}  // namespace

struct HttpExchange::Connection {
  explicit Connection(const asio::any_io_executor& executor) : stream(executor) {
    buffer.reserve(kReadBytes);
  }
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  bool reusable = true;  // after the last answer
};

Result<std::unique_ptr<HttpExchange>> HttpExchange::Create(const asio::any_io_executor& executor,
                                                           const ClientOptions& options) {
  tcp::resolver resolver(executor);
  error_code error;
  Endpoints endpoints = resolver.resolve(options.url.host, options.url.port, error);
  if (error) {
    return InvalidArgument(
        fmt::format("the host cannot be resolved ({}): {}", error.message(), options.url.host));
  }
  return std::unique_ptr<HttpExchange>(new HttpExchange(executor, options, std::move(endpoints)));
}

HttpExchange::HttpExchange(const asio::any_io_executor& executor, const ClientOptions& options,
                           Endpoints endpoints)
    : executor_(executor), options_(options), endpoints_(std::move(endpoints)) {}

HttpExchange::~HttpExchange() = default;

asio::awaitable<Result<std::unique_ptr<HttpExchange::Connection>>> HttpExchange::Open() {
  auto connection = std::make_unique<Connection>(executor_);
  connection->stream.expires_after(options_.connect_timeout);
  const auto [error, endpoint] =
      co_await connection->stream.async_connect(endpoints_, kUseAwaitable);
  if (error) {
    std::string message =
        fmt::format("cannot connect to {}: {}", options_.url.Authority(),
                    error == beast::error::timeout ? "no answer in time" : error.message());
    co_return error == beast::error::timeout ? DeadlineExceeded(std::move(message))
                                             : Unavailable(std::move(message));
  }
  error_code ignored;
  connection->stream.socket().set_option(tcp::no_delay(true), ignored);
  co_return std::move(connection);
}

asio::awaitable<Status> HttpExchange::Connect(size_t count) {
  while (idle_.size() < count) {
    auto opened = co_await Open();
    if (!opened.ok()) {
      co_return opened.status();
    }
    idle_.push_back(std::move(opened).value());
  }
  co_return Status();
}

asio::awaitable<HttpAnswer> HttpExchange::Send(std::string_view request) {
  bool reconnected = false;
  for (;;) {
    std::unique_ptr<Connection> connection;
    const bool kept = !idle_.empty();
    if (kept) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    } else {
      auto opened = co_await Open();
      if (!opened.ok()) {
        HttpAnswer answer;
        answer.failure =
            opened.code() == StatusCode::kDeadlineExceeded ? Failure::kTimeout : Failure::kConnect;
        answer.detail = opened.status().message();
        answer.received = SystemClock().Now();
        co_return answer;
      }
      connection = std::move(opened).value();
    }
    HttpAnswer answer = co_await SendOver(*connection, request);
    if (answer.failure == Failure::kClosed && kept && !reconnected) {
      reconnected = true;
      idle_.clear();  // they are as old as this one
      continue;
    }
    answer.reconnected = reconnected;
    if (answer.failure == Failure::kNone && connection->reusable) {
      idle_.push_back(std::move(connection));
    }
    co_return answer;
  }
}

asio::awaitable<HttpAnswer> HttpExchange::SendOver(Connection& connection,
                                                   std::string_view request) {
  HttpAnswer answer;
  connection.stream.expires_after(options_.request_timeout);
  const auto [write_error, written] = co_await asio::async_write(
      connection.stream, asio::buffer(request.data(), request.size()), kUseAwaitable);
  // A server that refuses early may answer and close while the body is still being sent: what it
  // said can be read even after a failed write.
  beast_http::response_parser<beast_http::string_body> parser;
  parser.body_limit(options_.max_answer_bytes);
  const auto [read_error, num_read] =
      co_await beast_http::async_read(connection.stream, connection.buffer, parser, kUseAwaitable);
  answer.received = SystemClock().Now();
  const error_code error = write_error && read_error ? write_error : read_error;
  if (error) {
    answer.failure = FailureOf(error, parser.got_some());
    answer.detail = error.message();
    co_return answer;
  }
  connection.reusable = !write_error && parser.keep_alive();
  auto& message = parser.get();
  answer.status = static_cast<int32_t>(message.result_int());
  if (const auto found = message.find(beast_http::field::retry_after); found != message.end()) {
    answer.has_retry_after = true;
    const auto value = found->value();
    std::from_chars(value.data(), value.data() + value.size(), answer.retry_after_seconds);
  }
  answer.body = std::move(message.body());
  co_return answer;
}

}  // namespace bouquet::client
