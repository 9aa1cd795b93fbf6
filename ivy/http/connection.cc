#include "ivy/http/connection.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/log.h"
#include "ivy/http/hang_up_watch.h"
#include "ivy/http/response_head.h"

namespace bouquet::ivy::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using api::ErrorKind;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kUseAwaitable = asio::as_tuple(asio::use_awaitable);

// Without room for a whole small request, a 4 KB POST costs two or three reads.
constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kBodyReadBytes = 64 << 10;
constexpr int64_t kSmallBodyBytes = 64 << 10;  // not counted against max_buffered_bytes
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr size_t kMaxRequestIdLength = 128;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(boost::core::string_view text) { return {text.data(), text.size()}; }

bool IsPrintable(std::string_view text) {
  for (const char c : text) {
    if (c < 0x20 || c > 0x7E) {
      return false;
    }
  }
  return true;
}

bool IsJson(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  const size_t end = type.find_last_not_of(" \t");
  return end == std::string_view::npos ||
         EqualsIgnoringCase(type.substr(0, end + 1), "application/json");
}

/// One more of something, until it ends.
class CountedSlot {
 public:
  explicit CountedSlot(std::atomic<int64_t>& count) : count_(count), number_(++count) {}
  ~CountedSlot() { --count_; }
  CountedSlot(const CountedSlot&) = delete;
  CountedSlot& operator=(const CountedSlot&) = delete;
  int64_t number() const { return number_; }

 private:
  std::atomic<int64_t>& count_;
  int64_t number_;
};

}  // namespace

/// Shared, because an operation of the watch that is still pending holds it too, whatever ended
/// Serve.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Worker& worker, ServerState& state)
      : socket_(std::move(socket)), worker_(worker), state_(state) {
    buffer_.reserve(kReadBytes);
    here_ = worker_.connections.insert(worker_.connections.end(), this);
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
  }
  ~Connection() {
    EndExchange();
    worker_.connections.erase(here_);
    --state_.connections;  // counted when it was accepted
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  awaitable<void> Serve();
  awaitable<void> Refuse();

  void Close() {
    error_code ignored;
    socket_.close(ignored);
  }

  void Sweep(TimePoint now) {
    if (now >= wait_until_) {
      wait_until_ = TimePoint::max();
      expired_ = true;
      error_code ignored;
      socket_.cancel(ignored);
    }
  }

 private:
  using Parser = beast_http::request_parser<beast_http::string_body>;
  enum class ReadOutcome : uint8_t { kComplete, kFault, kClosed };

  // In the order of an exchange.
  awaitable<bool> AwaitFirstByte();
  void BeginExchange();
  awaitable<ReadOutcome> ReadRequest();
  std::optional<ReadOutcome> ParseBuffered();
  std::optional<ReadOutcome> TakeHeader();
  ReadOutcome BodyTooLarge(std::string_view given);
  ReadOutcome TooManyHeldBytes();
  ReadOutcome Fault(ErrorKind kind, std::string message);
  ReadOutcome ParserFault(error_code error);
  void FillRequest();
  awaitable<Response> Answer();
  awaitable<Response> RunHandler(const Route& route);
  std::optional<Response> RefuseEarly(std::string_view method);
  void WriteHead(const Response& response);
  awaitable<bool> Write(const Response& response);
  void EndExchange();
  awaitable<void> CloseGently();

  bool ReserveBody(int64_t bytes);
  void WaitAtMost(std::chrono::nanoseconds wait) {
    expired_ = false;
    wait_until_ = SystemClock().Now() + wait;
  }
  void StopWaiting() { wait_until_ = TimePoint::max(); }

  tcp::socket socket_;
  Worker& worker_;
  ServerState& state_;
  std::list<Connection*>::iterator here_;
  boost::beast::flat_buffer buffer_;
  HangUpWatch watch_{socket_, buffer_};

  std::shared_ptr<const ServerLimits> limits_ = state_.limits.Current();  // of this exchange
  TimePoint wait_until_ = TimePoint::max();
  bool expired_ = false;

  // Of the exchange under way:
  std::optional<Parser> parser_;
  std::vector<Header> headers_;
  Request request_;
  std::optional<api::Error> fault_;
  TimePoint began_;
  RouteMatch match_;
  int64_t held_bytes_ = 0;
  bool continue_wanted_ = false;
  bool in_exchange_ = false;
  bool admitted_ = true;  // its header came before the server began to refuse
  bool keep_alive_ = true;
  std::string head_;
};

awaitable<void> Connection::Serve() {
  while (co_await AwaitFirstByte()) {
    BeginExchange();
    const ReadOutcome outcome = co_await ReadRequest();
    StopWaiting();
    if (outcome == ReadOutcome::kClosed) {
      state_.metrics.CountRequest(match_.route, 499, ErrorKind::kClientGone,
                                  SystemClock().Now() - began_);
      state_.metrics.CountGone(GoneStage::kReading);
      break;
    }
    FillRequest();
    Response response;
    if (outcome == ReadOutcome::kFault) {
      keep_alive_ = false;
      const api::Dialect dialect =
          match_.route == nullptr ? api::Dialect::kOpenAi : match_.route->endpoint.dialect;
      response = ErrorResponse(*fault_, dialect, request_.request_id);
    } else {
      response = co_await Answer();
    }
    if (watch_.gone()) {
      state_.metrics.CountRequest(match_.route, 499, ErrorKind::kClientGone,
                                  SystemClock().Now() - began_);
      state_.metrics.CountGone(GoneStage::kHandling);
      break;
    }
    WriteHead(response);
    state_.metrics.CountRequest(match_.route, response.status, response.failure,
                                SystemClock().Now() - began_);
    const bool written = co_await Write(response);
    co_await watch_.Join();
    EndExchange();
    if (!written) {
      state_.metrics.CountGone(GoneStage::kWriting);
      break;
    }
    if (!keep_alive_) {
      break;
    }
  }
  co_await watch_.Join();
  EndExchange();
  co_await CloseGently();
}

awaitable<void> Connection::Refuse() {
  state_.metrics.CountRefusedConnection();
  keep_alive_ = false;
  fault_ = api::Error{
      ErrorKind::kUnavailable,
      fmt::format("too many connections: limit {} (--max-connections)", limits_->max_connections),
      ""};
  FillRequest();
  const Response response = ErrorResponse(*fault_, api::Dialect::kOpenAi, request_.request_id);
  WriteHead(response);
  if (co_await Write(response)) {
    co_await CloseGently();
  }
}

awaitable<bool> Connection::AwaitFirstByte() {
  if (buffer_.size() > 0) {
    co_return true;
  }
  limits_ = state_.limits.Current();
  WaitAtMost(limits_->idle_timeout);
  const auto [error, num_bytes] =
      co_await socket_.async_read_some(buffer_.prepare(kReadBytes), kUseAwaitable);
  StopWaiting();
  buffer_.commit(num_bytes);
  co_return !error;
}

void Connection::BeginExchange() {
  limits_ = state_.limits.Current();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits_->max_header_bytes));
  // The parser would give up before the header can be looked at, so the limit is kept here: see
  // TakeHeader and ParseBuffered.
  parser_->body_limit(boost::none);
  headers_.clear();
  request_ = Request();
  fault_.reset();
  match_ = RouteMatch();
  continue_wanted_ = false;
  admitted_ = true;
  keep_alive_ = false;
  began_ = SystemClock().Now();
  WaitAtMost(limits_->read_timeout);
}

awaitable<Connection::ReadOutcome> Connection::ReadRequest() {
  for (;;) {
    const std::optional<ReadOutcome> outcome = ParseBuffered();
    if (outcome) {
      co_return *outcome;
    }
    if (continue_wanted_) {
      continue_wanted_ = false;
      const auto [error, num_bytes] =
          co_await asio::async_write(socket_, asio::buffer(kContinue), kUseAwaitable);
      if (error) {
        co_return ReadOutcome::kClosed;
      }
    }
    const bool in_body = parser_->is_header_done();
    const auto [error, num_bytes] = co_await socket_.async_read_some(
        buffer_.prepare(in_body ? kBodyReadBytes : kReadBytes), kUseAwaitable);
    buffer_.commit(num_bytes);
    if (expired_) {
      co_return Fault(ErrorKind::kReadTimeout,
                      fmt::format("the {} was not complete in time: limit {} ms "
                                  "(--read-timeout-ms)",
                                  in_body ? "body" : "header", limits_->read_timeout.count()));
    }
    if (error) {
      co_return ReadOutcome::kClosed;
    }
  }
}

/// Parses what has been read; nullopt when more is needed.
std::optional<Connection::ReadOutcome> Connection::ParseBuffered() {
  while (buffer_.size() > 0) {
    error_code error;
    const size_t used = parser_->put(asio::const_buffer(buffer_.data()), error);
    buffer_.consume(used);
    if (error && error != beast_http::error::need_more) {
      return ParserFault(error);
    }
    if (parser_->is_header_done() && !in_exchange_) {
      if (const std::optional<ReadOutcome> outcome = TakeHeader()) {
        return outcome;
      }
      parser_->eager(true);  // from here on, as much of the body as there is
    }
    const auto body_bytes = static_cast<int64_t>(parser_->get().body().size());
    if (body_bytes > limits_->max_body_bytes) {
      return BodyTooLarge("it is longer");
    }
    if (parser_->is_done()) {
      return ReadOutcome::kComplete;
    }
    if (!ReserveBody(body_bytes)) {
      return TooManyHeldBytes();
    }
    if (error == beast_http::error::need_more || used == 0) {
      break;
    }
  }
  return std::nullopt;
}

/// Once per request, as soon as its header is complete.
std::optional<Connection::ReadOutcome> Connection::TakeHeader() {
  in_exchange_ = true;
  ++state_.exchanges;
  admitted_ = !state_.refusing;
  const auto& message = parser_->get();
  match_ = state_.routes.Find(View(message.method_string()), PathOf(View(message.target())));
  const boost::optional<uint64_t> length = parser_->content_length();
  if (length && *length > static_cast<uint64_t>(limits_->max_body_bytes)) {
    return BodyTooLarge(fmt::format("{} bytes", *length));
  }
  if (length && !ReserveBody(static_cast<int64_t>(*length))) {
    return TooManyHeldBytes();
  }
  const std::string_view expect = View(message[beast_http::field::expect]);
  if (expect.empty() || message.version() < 11) {
    return std::nullopt;
  }
  if (!EqualsIgnoringCase(expect, "100-continue")) {
    return Fault(ErrorKind::kExpectationFailed,
                 "the only expectation that can be met is 100-continue");
  }
  continue_wanted_ = !parser_->is_done() && buffer_.size() == 0;
  return std::nullopt;
}

Connection::ReadOutcome Connection::BodyTooLarge(std::string_view given) {
  return Fault(ErrorKind::kTooLarge,
               fmt::format("body is too large: {}, limit {} (--max-body-bytes)", given,
                           limits_->max_body_bytes));
}

Connection::ReadOutcome Connection::TooManyHeldBytes() {
  return Fault(ErrorKind::kOverCapacity,
               fmt::format("too many bytes of large bodies are held: limit {} "
                           "(--max-buffered-bytes)",
                           limits_->max_buffered_bytes));
}

Connection::ReadOutcome Connection::Fault(ErrorKind kind, std::string message) {
  fault_ = api::Error{kind, std::move(message), ""};
  return ReadOutcome::kFault;
}

Connection::ReadOutcome Connection::ParserFault(error_code error) {
  if (error == beast_http::error::header_limit) {
    return Fault(ErrorKind::kHeaderTooLarge,
                 fmt::format("request line and headers are too long: limit {} bytes "
                             "(--max-header-bytes)",
                             limits_->max_header_bytes));
  }
  return Fault(ErrorKind::kMalformedRequest,
               fmt::format("the request is not valid HTTP/1.1: {}", error.message()));
}

void Connection::FillRequest() {
  request_.received = SystemClock().Now();
  if (parser_ && parser_->is_header_done()) {
    for (const auto& field : parser_->get().base()) {
      headers_.push_back({View(field.name_string()), View(field.value())});
    }
    request_.headers = headers_;
    if (parser_->is_done()) {
      keep_alive_ = parser_->keep_alive();
      request_.body = std::move(parser_->get().body());
    }
  }
  const std::string_view given = request_.Find("x-request-id");
  if (!given.empty() && given.size() <= kMaxRequestIdLength && IsPrintable(given)) {
    request_.request_id = given;
  } else {
    request_.request_id = fmt::format(FMT_COMPILE("{:016x}"), worker_.id_source());
  }
}

/// What is answered without a handler, in the order in which it is checked.
std::optional<Response> Connection::RefuseEarly(std::string_view method) {
  const RouteMatch& match = match_;
  const auto refuse = [&](ErrorKind kind, std::string message) {
    const api::Dialect dialect =
        match.route == nullptr ? api::Dialect::kOpenAi : match.route->endpoint.dialect;
    return ErrorResponse({kind, std::move(message), ""}, dialect, request_.request_id);
  };
  if (match.route == nullptr && match.allow.empty()) {
    return refuse(ErrorKind::kUnknownRoute,
                  fmt::format("there is no such route: {} {}", api::Shorten(method),
                              api::Shorten(View(parser_->get().target()))));
  }
  if (match.route == nullptr) {
    Response response = refuse(
        ErrorKind::kMethodNotAllowed,
        fmt::format("the route has no method {}: allowed {}", api::Shorten(method), match.allow));
    response.fields += "allow: " + match.allow + "\r\n";
    return response;
  }
  const api::EndpointKind kind = match.route->endpoint.kind;
  const bool needs_key = kind == api::EndpointKind::kCatalog || kind == api::EndpointKind::kData;
  if (needs_key && !state_.keys.Accepts(request_.Find("authorization"))) {
    return refuse(ErrorKind::kUnauthorized, "a valid key is required: Authorization: Bearer <key>");
  }
  if (kind != api::EndpointKind::kData) {
    return std::nullopt;
  }
  if (!admitted_) {
    keep_alive_ = false;
    return refuse(ErrorKind::kUnavailable, "the server is shutting down");
  }
  if (!IsJson(request_.Find("content-type"))) {
    return refuse(ErrorKind::kUnsupportedMediaType,
                  fmt::format("the content type must be application/json, not {}",
                              api::Shorten(request_.Find("content-type"))));
  }
  const std::string_view encoding = request_.Find("content-encoding");
  if (!encoding.empty() && !EqualsIgnoringCase(encoding, "identity")) {
    return refuse(
        ErrorKind::kUnsupportedMediaType,
        fmt::format("compressed bodies are not read: content-encoding {}", api::Shorten(encoding)));
  }
  return std::nullopt;
}

awaitable<Response> Connection::Answer() {
  const std::string_view method = View(parser_->get().method_string());
  if (std::optional<Response> preflight = state_.cors.AnswerPreflight(method, request_)) {
    co_return *std::move(preflight);
  }
  if (std::optional<Response> refusal = RefuseEarly(method)) {
    co_return *std::move(refusal);
  }
  const api::Endpoint& endpoint = match_.route->endpoint;
  request_.method = endpoint.method;
  request_.rest = match_.rest;
  if (endpoint.kind != api::EndpointKind::kData) {
    Response response = co_await RunHandler(*match_.route);
    co_return response;
  }
  const CountedSlot slot(state_.data_requests);
  if (slot.number() > limits_->max_concurrent_requests) {
    co_return ErrorResponse(
        {ErrorKind::kOverCapacity,
         fmt::format("too many requests in progress: limit {} (--max-concurrent-requests)",
                     limits_->max_concurrent_requests),
         ""},
        endpoint.dialect, request_.request_id);
  }
  request_.cancelled = std::stop_source();
  watch_.Start(shared_from_this(), request_.cancelled, parser_->get().version() >= 11);
  Response response = co_await RunHandler(*match_.route);
  watch_.Cancel();
  co_return response;
}

awaitable<Response> Connection::RunHandler(const Route& route) {
  std::string failure;
  try {
    Response response = co_await route.handler(request_);
    co_return response;
  } catch (const std::exception& exception) {
    failure = exception.what();
  }
  LogError("handler of {} failed: {} (request {})", route.endpoint.path, failure,
           request_.request_id);
  co_return ErrorResponse({ErrorKind::kInternal, failure, ""}, route.endpoint.dialect,
                          request_.request_id);
}

/// The head of the answer, up to its empty line.
void Connection::WriteHead(const Response& response) {
  if (state_.refusing || watch_.half_closed()) {
    keep_alive_ = false;
  }
  const bool version_10 = parser_ && parser_->is_header_done() && parser_->get().version() < 11;
  const AfterAnswer after = !keep_alive_ ? AfterAnswer::kClose
                            : version_10 ? AfterAnswer::kKeepAndSaySo
                                         : AfterAnswer::kKeep;
  std::string cors_fields;
  state_.cors.AppendFields(request_, cors_fields);
  head_.clear();
  AppendResponseHead(response, request_.request_id, worker_.date, cors_fields, after, head_);
}

awaitable<bool> Connection::Write(const Response& response) {
  const bool head_only =
      parser_ && parser_->is_header_done() && parser_->get().method() == beast_http::verb::head;
  const std::string_view body = head_only ? std::string_view() : response.body;
  const auto seconds =
      std::chrono::seconds(static_cast<int64_t>(body.size()) / limits_->slowest_bytes_per_second);
  WaitAtMost(limits_->write_timeout + seconds);
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(head_), asio::buffer(body)};
  const auto [error, num_bytes] = co_await asio::async_write(socket_, parts, kUseAwaitable);
  StopWaiting();
  co_return !error;
}

void Connection::EndExchange() {
  if (in_exchange_) {
    in_exchange_ = false;
    --state_.exchanges;
    if (state_.refusing) {
      const std::lock_guard lock(state_.idle_mutex);
      state_.idle_changed.notify_all();
    }
  }
  state_.body_bytes -= held_bytes_;
  held_bytes_ = 0;
  // An idle connection keeps its read buffer and nothing else.
  std::string().swap(request_.body);
  parser_.reset();
}

bool Connection::ReserveBody(int64_t bytes) {
  if (bytes <= kSmallBodyBytes || bytes <= held_bytes_) {
    return true;
  }
  const int64_t more = bytes - held_bytes_;
  if ((state_.body_bytes += more) > limits_->max_buffered_bytes) {
    state_.body_bytes -= more;
    return false;
  }
  held_bytes_ = bytes;
  return true;
}

/// Closing a socket with unread input resets the connection, and the client may lose the answer:
/// what still comes is read and dropped for a while first.
awaitable<void> Connection::CloseGently() {
  error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  if (!fault_ || error) {
    co_return;
  }
  WaitAtMost(kLingerTime);
  buffer_.clear();
  while (!expired_) {
    const auto [read_error, num_bytes] =
        co_await socket_.async_read_some(buffer_.prepare(kBodyReadBytes), kUseAwaitable);
    if (read_error) {
      break;
    }
  }
}

awaitable<void> ServeConnection(tcp::socket socket, Worker& worker, ServerState& state) {
  const auto connection = std::make_shared<Connection>(std::move(socket), worker, state);
  try {
    co_await connection->Serve();
  } catch (const std::exception& exception) {
    LogError("connection ended: {}", exception.what());
    connection->Close();  // what is pending holds it
  }
}

awaitable<void> RefuseConnection(tcp::socket socket, Worker& worker, ServerState& state) {
  const auto connection = std::make_shared<Connection>(std::move(socket), worker, state);
  try {
    co_await connection->Refuse();
  } catch (const std::exception& exception) {
    LogError("connection ended: {}", exception.what());
  }
}

void SweepConnections(Worker& worker, TimePoint now) {
  for (Connection* connection : worker.connections) {
    connection->Sweep(now);
  }
}

}  // namespace bouquet::ivy::http
