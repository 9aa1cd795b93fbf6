#include "client/http_embed_client.h"

#include <fmt/format.h>

#include <utility>

#include "client/answer.h"
#include "client/http_exchange.h"
#include "client/request_body.h"

namespace bouquet::client {
namespace {

namespace asio = boost::asio;

constexpr int32_t kHttpOk = 200;

StatusCode CodeOf(int32_t http_status) {
  switch (http_status) {
    case 400:
    case 413:
    case 415:
    case 422: return StatusCode::kInvalidArgument;
    case 401: return StatusCode::kUnauthenticated;
    case 403: return StatusCode::kPermissionDenied;
    case 404:
    case 405: return StatusCode::kNotFound;
    case 408:
    case 504: return StatusCode::kDeadlineExceeded;
    case 429: return StatusCode::kResourceExhausted;
    case 501: return StatusCode::kUnimplemented;
    case 503: return StatusCode::kUnavailable;
    default: return StatusCode::kUnknown;
  }
}

Status StatusOf(const HttpAnswer& answer) {
  switch (answer.failure) {
    case Failure::kNone: break;
    case Failure::kTimeout: return DeadlineExceeded("no answer in time: " + answer.detail);
    case Failure::kConnect: return Unavailable(answer.detail);
    case Failure::kTruncated: return Unavailable("the answer ended early: " + answer.detail);
    default: return Unavailable("the connection was closed without an answer: " + answer.detail);
  }
  return Status(CodeOf(answer.status), fmt::format("the server answered {}: {}", answer.status,
                                                   ReadErrorMessage(answer.body)))
      .WithRetryAfter(answer.retry_after_seconds);
}

class HttpEmbedClient final : public EmbedClient {
 public:
  HttpEmbedClient(ClientOptions options, std::unique_ptr<HttpExchange> exchange)
      : options_(std::move(options)), exchange_(std::move(exchange)) {}

  asio::awaitable<Status> Connect(size_t count) override { return exchange_->Connect(count); }

  asio::awaitable<EmbedReply> Embed(const PreparedRequest& request) override {
    const HttpAnswer answer = co_await exchange_->Send(request.bytes);
    EmbedReply reply;
    reply.failure = answer.failure;
    reply.http_status = answer.status;
    reply.has_retry_after = answer.has_retry_after;
    reply.reconnected = answer.reconnected;
    reply.received = answer.received;
    if (answer.failure != Failure::kNone || answer.status != kHttpOk) {
      reply.failure = answer.failure == Failure::kNone ? Failure::kStatus : answer.failure;
      reply.status = StatusOf(answer);
      co_return reply;
    }
    Result<EmbedRows> rows = ReadAnswer(options_.dialect, answer.body, request.num_inputs);
    if (rows.ok()) {
      reply.rows = std::move(rows).value();
    } else {
      reply.failure = Failure::kMalformed;
      reply.status = rows.status();
    }
    co_return reply;
  }

  asio::awaitable<Result<std::string>> Fetch(std::string path) override {
    const std::string request = HttpGetBytes(options_, path);
    HttpAnswer answer = co_await exchange_->Send(request);
    if (answer.failure != Failure::kNone || answer.status != kHttpOk) {
      co_return StatusOf(answer);
    }
    co_return std::move(answer.body);
  }

 private:
  const ClientOptions options_;
  std::unique_ptr<HttpExchange> exchange_;
};

}  // namespace

Result<std::unique_ptr<EmbedClient>> CreateHttpEmbedClient(const asio::any_io_executor& executor,
                                                           ClientOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<HttpExchange> exchange, HttpExchange::Create(executor, options));
  return std::unique_ptr<EmbedClient>(
      std::make_unique<HttpEmbedClient>(std::move(options), std::move(exchange)));
}

}  // namespace bouquet::client
