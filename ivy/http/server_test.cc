#include "ivy/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "ivy/testing/raw_client.h"

namespace bouquet::ivy::http {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using api::Dialect;
using api::EndpointKind;
using api::Method;
using ivy::testing::Ask;
using ivy::testing::Get;
using ivy::testing::Post;
using ivy::testing::RawClient;
using ivy::testing::RawResponse;
using ::testing::HasSubstr;

/// Waits for what another thread is about to do; the test fails, and does not hang, without it.
bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

class ServerTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options = {}, ApiKeys* keys = nullptr) {
    options.port = 0;
    server_ =
        std::make_unique<Server>(options, Routes(), keys == nullptr ? no_keys_ : *keys, metrics_);
    ASSERT_TRUE(server_->Start().ok());
    port_ = server_->port();
  }

  RouteTable Routes() {
    RouteTable routes;
    const auto add = [&](Method method, std::string path, EndpointKind kind, Handler handler,
                         Dialect dialect = Dialect::kOpenAi) {
      routes.Add({{method, std::move(path), kind, dialect, ""}, std::move(handler)});
    };
    add(Method::kPost, "/echo", EndpointKind::kData,
        [](Request& request) { return Echo(request); });
    add(
        Method::kPost, "/tei-echo", EndpointKind::kData,
        [](Request& request) { return Echo(request); }, Dialect::kTei);
    add(Method::kPost, "/hold", EndpointKind::kData,
        [this](Request& request) { return Hold(request); });
    add(Method::kPost, "/throw", EndpointKind::kData,
        [](Request& request) -> asio::awaitable<Response> {
          if (request.body != "no") {
            throw std::runtime_error("secret detail");
          }
          co_return Response();
        });
    add(Method::kPost, "/large", EndpointKind::kData,
        [](Request& request) -> asio::awaitable<Response> {
          Response response;
          response.body.assign(std::stoul(request.body), 'x');
          co_return response;
        });
    add(Method::kGet, "/open", EndpointKind::kDocument, [](Request&) -> asio::awaitable<Response> {
      Response response;
      response.body = "open";
      co_return response;
    });
    add(Method::kGet, "/items/*", EndpointKind::kCatalog,
        [](Request& request) -> asio::awaitable<Response> {
          Response response;
          response.body = request.rest;
          co_return response;
        });
    return routes;
  }

  static asio::awaitable<Response> Echo(Request& request) {
    Response response;
    response.body = request.body;
    co_return response;
  }

  /// Waits until the test lets it go or the client hangs up.
  asio::awaitable<Response> Hold(Request& request) {
    ++num_held_;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!let_go_ && !*request.cancelled) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    num_cancelled_ += *request.cancelled ? 1 : 0;
    --num_held_;
    Response response;
    response.body = "held: " + request.body;
    co_return response;
  }

  /// The value of a series, as scraped.
  double Metric(const std::string& series) {
    const std::string text = metrics_.Render();
    const size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) {
      ADD_FAILURE() << "no series " << series;
      return -1;
    }
    return std::stod(text.substr(at + series.size() + 2));
  }

  void ExpectServes() { EXPECT_EQ(Ask(port_, Post("/echo", "next")).body, "next"); }

  std::atomic<bool> let_go_ = false;
  std::atomic<int> num_held_ = 0;
  std::atomic<int> num_cancelled_ = 0;
  ApiKeys no_keys_;
  Metrics metrics_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

TEST_F(ServerTest, AnswersRequestAfterRequestOnOneConnection) {
  Start();
  RawClient client(port_);
  for (int i = 0; i < 3; ++i) {
    client.Send(Post("/echo", "body " + std::to_string(i)));
    const std::optional<RawResponse> response = client.Read();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "body " + std::to_string(i));
    EXPECT_EQ(response->Header("content-type"), "application/json");
    EXPECT_THAT(response->Header("date"), HasSubstr(" GMT"));
    EXPECT_EQ(response->Header("connection"), "");
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  Start();
  RawClient client(port_);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += Post("/echo", std::string(static_cast<size_t>(i) * 40, 'a') + std::to_string(i));
  }
  client.Send(all);
  for (int i = 0; i < 50; ++i) {
    const std::optional<RawResponse> response = client.Read();
    ASSERT_TRUE(response.has_value()) << i;
    EXPECT_TRUE(response->body.ends_with(std::to_string(i))) << i;
  }
}

TEST_F(ServerTest, KeepsWhatIsPipelinedWhileAHandlerWaits) {
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", "1"));
  ASSERT_TRUE(Eventually([&] { return num_held_ == 1; }));
  client.Send(Post("/echo", "2") + Post("/echo", std::string(200'000, 'x')));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(num_cancelled_, 0);
  let_go_ = true;
  EXPECT_EQ(client.Read().value_or(RawResponse()).body, "held: 1");
  EXPECT_EQ(client.Read().value_or(RawResponse()).body, "2");
  EXPECT_EQ(client.Read().value_or(RawResponse()).body.size(), 200'000U);
}

TEST_F(ServerTest, ReadsBodiesInPiecesAndInChunks) {
  Start();
  RawClient client(port_);
  const std::string whole = Post("/echo", "in pieces");
  for (const char c : whole) {
    client.Send(std::string(1, c));
  }
  EXPECT_EQ(client.Read().value_or(RawResponse()).body, "in pieces");
  client.Send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.Send("3\r\nabc\r\n");
  client.Send("A;extension=1\r\n0123456789\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().value_or(RawResponse()).body, "abc0123456789");
}

TEST_F(ServerTest, RefusesABodyThatIsTooLargeBeforeReadingIt) {
  Start({.max_body_bytes = 2000});
  RawClient client(port_);
  client.Send("POST /tei-echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2001\r\n\r\n");
  const std::optional<RawResponse> response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 413);
  EXPECT_THAT(response->body, HasSubstr("--max-body-bytes"));
  EXPECT_THAT(response->body, HasSubstr("2001"));
  EXPECT_THAT(response->body, HasSubstr("error_type"));  // in the route's dialect
  EXPECT_EQ(response->Header("connection"), "close");
  ExpectServes();
  EXPECT_EQ(Ask(port_, Post("/echo", std::string(2000, 'x'))).status, 200);
}

TEST_F(ServerTest, RefusesChunksThatAreTooLargeInAll) {
  Start({.max_body_bytes = 2000});
  RawClient client(port_);
  client.Send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    client.Send("3e8\r\n" + std::string(1000, 'x') + "\r\n");
  }
  EXPECT_EQ(client.Read().value_or(RawResponse()).status, 413);
  ExpectServes();
}

TEST_F(ServerTest, GetsItsRefusalThroughToAClientThatKeepsSending) {
  Start({.max_body_bytes = 2000});
  RawClient client(port_);
  client.Send(Post("/echo", std::string(8 << 20, 'x')));
  EXPECT_EQ(client.Read().value_or(RawResponse()).status, 413);
}

TEST_F(ServerTest, RefusesHeadersThatAreTooLong) {
  Start({.max_header_bytes = 2048});
  const RawResponse response = Ask(port_, Get("/open", "X: " + std::string(5000, 'x') + "\r\n"));
  EXPECT_EQ(response.status, 431);
  EXPECT_THAT(response.body, HasSubstr("--max-header-bytes"));
  EXPECT_EQ(Ask(port_, Get("/" + std::string(5000, 'x'))).status, 431);
  ExpectServes();
}

TEST_F(ServerTest, EndsRequestsThatDoNotCompleteInTime) {
  Start({.read_timeout = 100ms});
  RawClient slow_header(port_);
  slow_header.Send("POST /echo HTTP/1.1\r\nHost:");
  std::optional<RawResponse> response = slow_header.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
  EXPECT_THAT(response->body, HasSubstr("the header was not complete in time: limit 100 ms"));
  EXPECT_TRUE(slow_header.ReadsEnd());

  RawClient slow_body(port_);
  slow_body.Send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n12345");
  response = slow_body.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
  EXPECT_THAT(response->body, HasSubstr("the body was not complete in time"));
  ExpectServes();
}

TEST_F(ServerTest, CutsOffAClientThatTricklesItsHeader) {
  Start({.read_timeout = 150ms});
  RawClient client(port_);
  client.Send("GET /open HTTP/1.1\r\n");
  bool refused = false;
  for (int i = 0; i < 200 && !refused; ++i) {
    refused = !client.Send("X: 1\r\n");
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(client.Read().value_or(RawResponse()).status, 408);
}

TEST_F(ServerTest, ClosesIdleConnectionsWithoutAWord) {
  Start({.idle_timeout = 80ms});
  RawClient fresh(port_);
  EXPECT_TRUE(fresh.ReadsEnd());
  RawClient used(port_);
  used.Send(Get("/open"));
  EXPECT_EQ(used.Read().value_or(RawResponse()).status, 200);
  EXPECT_TRUE(used.ReadsEnd());
  EXPECT_EQ(Metric(R"(bouquet_http_requests_total{dialect="none",route="unmatched",status="4xx"})"),
            0);
}

TEST_F(ServerTest, TellsAClientToContinueOnlyWhenItMaySend) {
  Start({.max_body_bytes = 2000});
  RawClient client(port_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  std::this_thread::sleep_for(20ms);
  client.Send("body");
  const std::optional<RawResponse> response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->num_interim, 1);
  EXPECT_EQ(response->body, "body");

  const RawResponse large =
      Ask(port_,
          "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.num_interim, 0);
  EXPECT_EQ(Ask(port_, Post("/echo", "x", "Expect: a-miracle\r\n")).status, 417);
  ExpectServes();
}

TEST_F(ServerTest, RefusesWhatIsNotHttp) {
  Start();
  for (const std::string_view request :
       {"hello\r\n\r\n", "GET /open\r\n\r\n", "GET /open HTTP/9.9\r\n\r\n",
        "GET /open HTTP/1.1\r\nno colon\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    const RawResponse response = Ask(port_, request);
    EXPECT_EQ(response.status, 400) << request;
    EXPECT_EQ(response.Header("connection"), "close") << request;
  }
  ExpectServes();
}

TEST_F(ServerTest, TellsUnknownRoutesFromMethodsThatARouteHasNot) {
  Start();
  EXPECT_EQ(Ask(port_, Get("/nothing")).status, 404);
  EXPECT_THAT(Ask(port_, Get("/nothing")).body, HasSubstr("/nothing"));
  const RawResponse wrong = Ask(port_, Get("/echo"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.Header("allow"), "POST");
  EXPECT_EQ(Ask(port_, Post("/open", "")).Header("allow"), "GET, HEAD");
  EXPECT_EQ(Ask(port_, "DELETE /open HTTP/1.1\r\nHost: t\r\n\r\n").status, 405);
  EXPECT_EQ(Ask(port_, "BREW /open HTTP/1.1\r\nHost: t\r\n\r\n").status, 405);
  EXPECT_EQ(Ask(port_, Get("/open?x=1&y=/z")).status, 200);
  EXPECT_EQ(Ask(port_, Get("http://somewhere:1/open")).status, 200);
  EXPECT_EQ(Ask(port_, Get("/items/a/b%20c")).body, "a/b%20c");
  EXPECT_EQ(Ask(port_, Get("/items/")).status, 404);
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  Start();
  RawClient client(port_);
  client.Send("HEAD /open HTTP/1.1\r\nHost: t\r\n\r\n");
  const std::optional<RawResponse> head = client.Read(true);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->Header("content-length"), "4");
  client.Send(Get("/open"));
  EXPECT_EQ(client.Read().value_or(RawResponse()).body, "open");
}

TEST_F(ServerTest, TakesJsonOrNoContentTypeOnly) {
  Start();
  for (const std::string_view type : {"application/json", "Application/JSON; charset=utf-8", ""}) {
    const std::string field = "Content-Type: " + std::string(type) + "\r\n";
    EXPECT_EQ(Ask(port_, Post("/echo", "x", type.empty() ? "" : field)).status, 200) << type;
  }
  for (const std::string_view type : {"text/plain", "application/x-www-form-urlencoded", "json"}) {
    const std::string field = "Content-Type: " + std::string(type) + "\r\n";
    EXPECT_EQ(Ask(port_, Post("/echo", "x", field)).status, 415) << type;
  }
  EXPECT_EQ(Ask(port_, Post("/echo", "x", "Content-Encoding: gzip\r\n")).status, 415);
}

TEST_F(ServerTest, EchoesARequestIdOrMakesOne) {
  Start();
  EXPECT_EQ(Ask(port_, Get("/open", "X-Request-Id: my-id 7\r\n")).Header("x-request-id"),
            "my-id 7");
  const std::string made = Ask(port_, Get("/open")).Header("x-request-id");
  EXPECT_EQ(made.size(), 16U);
  EXPECT_NE(Ask(port_, Get("/open")).Header("x-request-id"), made);
  const std::string too_long(129, 'a');
  EXPECT_EQ(
      Ask(port_, Get("/open", "X-Request-Id: " + too_long + "\r\n")).Header("x-request-id").size(),
      16U);
  EXPECT_EQ(Ask(port_, Get("/open", "X-Request-Id: caf\xC3\xA9\r\n")).Header("x-request-id").size(),
            16U);
  EXPECT_EQ(Ask(port_, Get("/nothing", "X-Request-Id: e\r\n")).Header("x-request-id"), "e");
}

TEST_F(ServerTest, ServesOldClientsAndClosesWhenAsked) {
  Start();
  RawClient old(port_);
  old.Send("GET /open HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.Read().value_or(RawResponse()).Header("connection"), "close");
  EXPECT_TRUE(old.ReadsEnd());
  RawClient keeps(port_);
  keeps.Send("GET /open HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(keeps.Read().value_or(RawResponse()).Header("connection"), "keep-alive");
  RawClient closes(port_);
  closes.Send(Get("/open", "Connection: close\r\n"));
  EXPECT_EQ(closes.Read().value_or(RawResponse()).status, 200);
  EXPECT_TRUE(closes.ReadsEnd());
}

TEST_F(ServerTest, CancelsTheRequestOfAClientThatHangsUp) {
  Start();
  {
    RawClient client(port_);
    client.Send(Post("/hold", "x"));
    ASSERT_TRUE(Eventually([&] { return num_held_ == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return num_cancelled_ == 1; }));
  EXPECT_TRUE(
      Eventually([&] { return Metric(R"(bouquet_http_cancelled_total{stage="handling"})") == 1; }));
  EXPECT_EQ(Metric(R"(bouquet_http_requests_total{dialect="none",route="POST /hold",)"
                   R"(status="client_gone"})"),
            1);
  EXPECT_EQ(
      Metric(R"(bouquet_http_requests_total{dialect="none",route="POST /hold",status="2xx"})"), 0);
  ExpectServes();
}

TEST_F(ServerTest, AnswersAClientThatOnlyHasNothingMoreToSay) {
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", "half"));
  ASSERT_TRUE(Eventually([&] { return num_held_ == 1; }));
  client.CloseSending();
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(num_cancelled_, 0);
  let_go_ = true;
  const std::optional<RawResponse> response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "held: half");
  EXPECT_EQ(response->Header("connection"), "close");
  EXPECT_TRUE(client.ReadsEnd());
}

TEST_F(ServerTest, CountsAClientThatLeavesBeforeItsRequestIsComplete) {
  Start();
  {
    RawClient client(port_);
    client.Send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n123");
  }
  EXPECT_TRUE(
      Eventually([&] { return Metric(R"(bouquet_http_cancelled_total{stage="reading"})") == 1; }));
  EXPECT_TRUE(server_->WaitUntilIdle(5s));
  ExpectServes();
}

TEST_F(ServerTest, GivesUpOnAClientThatDoesNotRead) {
  Start({.write_timeout = 200ms, .slowest_bytes_per_second = 1 << 30});
  RawClient client(port_, 4096);
  client.Send(Post("/large", "64000000"));
  EXPECT_TRUE(
      Eventually([&] { return Metric(R"(bouquet_http_cancelled_total{stage="writing"})") == 1; }));
  EXPECT_TRUE(server_->WaitUntilIdle(5s));
  ExpectServes();
}

TEST_F(ServerTest, RefusesConnectionsOverTheLimitPolitely) {
  Start({.max_connections = 2});
  RawClient first(port_);
  RawClient second(port_);
  first.Send(Get("/open"));
  second.Send(Get("/open"));
  EXPECT_EQ(first.Read().value_or(RawResponse()).status, 200);
  EXPECT_EQ(second.Read().value_or(RawResponse()).status, 200);
  RawClient third(port_);
  const std::optional<RawResponse> refusal = third.Read();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 503);
  EXPECT_EQ(refusal->Header("retry-after"), "1");
  EXPECT_THAT(refusal->body, HasSubstr("--max-connections"));
  third.Close();
  first.Close();
  EXPECT_TRUE(Eventually([&] {
    RawClient again(port_);
    again.Send(Get("/open"));
    return again.Read().value_or(RawResponse()).status == 200;
  }));
}

TEST_F(ServerTest, LimitsDataRequestsInProgressButNotOthers) {
  Start({.max_concurrent_requests = 2});
  RawClient first(port_);
  RawClient second(port_);
  first.Send(Post("/hold", "1"));
  second.Send(Post("/hold", "2"));
  ASSERT_TRUE(Eventually([&] { return num_held_ == 2; }));
  RawClient third(port_);
  third.Send(Post("/echo", "3"));
  const std::optional<RawResponse> refusal = third.Read();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 429);
  EXPECT_EQ(refusal->Header("retry-after"), "1");
  EXPECT_THAT(refusal->body, HasSubstr("--max-concurrent-requests"));
  EXPECT_EQ(Ask(port_, Get("/open")).status, 200);
  let_go_ = true;
  EXPECT_EQ(first.Read().value_or(RawResponse()).status, 200);
  EXPECT_EQ(second.Read().value_or(RawResponse()).status, 200);
  third.Send(Post("/echo", "now"));  // the connection was kept
  EXPECT_EQ(third.Read().value_or(RawResponse()).body, "now");
}

TEST_F(ServerTest, LimitsTheBytesOfBodiesHeldTogether) {
  Start({.max_body_bytes = 1 << 20, .max_buffered_bytes = 1 << 20});
  RawClient first(port_);
  first.Send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 700000\r\n\r\n");
  ASSERT_TRUE(Eventually([&] {
    server_->PublishGauges();
    return Metric("bouquet_http_body_bytes") == 700'000;
  }));
  const RawResponse refusal =
      Ask(port_, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 700000\r\n\r\n");
  EXPECT_EQ(refusal.status, 429);
  EXPECT_THAT(refusal.body, HasSubstr("--max-buffered-bytes"));
  ExpectServes();  // small ones are not counted
  first.Send(std::string(700'000, 'x'));
  EXPECT_EQ(first.Read().value_or(RawResponse()).body.size(), 700'000U);
  EXPECT_EQ(Ask(port_, Post("/echo", std::string(700'000, 'y'))).status, 200);
}

TEST_F(ServerTest, AnswersAHandlerThatThrowsWithoutItsDetail) {
  Start();
  RawClient client(port_);
  client.Send(Post("/throw", ""));
  const std::optional<RawResponse> response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 500);
  EXPECT_EQ(response->body.find("secret"), std::string::npos);
  EXPECT_THAT(response->body, HasSubstr(response->Header("x-request-id")));
  client.Send(Post("/echo", "fine"));
  EXPECT_EQ(client.Read().value_or(RawResponse()).body, "fine");
}

TEST_F(ServerTest, FinishesWhatItHadWhenItRefusesTheRest) {
  Start({.num_threads = 2});
  RawClient running(port_);
  running.Send(Post("/hold", "running"));
  RawClient reading(port_);
  reading.Send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nha");
  ASSERT_TRUE(Eventually([&] { return num_held_ == 1; }));
  ASSERT_TRUE(Eventually([&] {
    server_->PublishGauges();
    return Metric("bouquet_http_requests_in_progress") == 2;
  }));
  server_->RefuseNewRequests();
  const RawResponse refusal = Ask(port_, Post("/echo", "new"));
  EXPECT_EQ(refusal.status, 503);
  EXPECT_EQ(refusal.Header("retry-after"), "1");
  EXPECT_EQ(refusal.Header("connection"), "close");
  EXPECT_THAT(refusal.body, HasSubstr("shutting down"));
  EXPECT_EQ(Ask(port_, Get("/open")).status, 200);
  EXPECT_FALSE(server_->WaitUntilIdle(30ms));
  let_go_ = true;
  reading.Send("lf");
  EXPECT_EQ(running.Read().value_or(RawResponse()).body, "held: running");
  EXPECT_EQ(reading.Read().value_or(RawResponse()).body, "half");
  EXPECT_TRUE(server_->WaitUntilIdle(5s));
  server_->Stop();
}

TEST_F(ServerTest, StopsWithConnectionsOpenAndHandlersWaiting) {
  Start({.num_threads = 2});
  RawClient idle(port_);
  RawClient waiting(port_);
  waiting.Send(Post("/hold", "x"));
  ASSERT_TRUE(Eventually([&] { return num_held_ == 1; }));
  server_.reset();
  EXPECT_TRUE(idle.ReadsEnd());
}

TEST_F(ServerTest, SaysWhenThePortIsInUse) {
  Start();
  Metrics metrics;
  Server second({.port = port_}, Routes(), no_keys_, metrics);
  const Status status = second.Start();
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(std::to_string(port_)));
  EXPECT_EQ(status.field(), "port");
  ExpectServes();
}

TEST_F(ServerTest, SaysWhenTheHostDoesNotExist) {
  Server server({.host = "no.such.host.invalid", .port = 0}, Routes(), no_keys_, metrics_);
  const Status status = server.Start();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "host");
}

TEST_F(ServerTest, AsksForAKeyWhereOneIsNeeded) {
  ApiKeys keys({"first-key", "second-key"});
  Start({}, &keys);
  const RawResponse refusal = Ask(port_, Post("/tei-echo", "x"));
  EXPECT_EQ(refusal.status, 401);
  EXPECT_EQ(refusal.Header("www-authenticate"), "Bearer");
  EXPECT_THAT(refusal.body, HasSubstr("Unauthorized"));
  EXPECT_EQ(Ask(port_, Get("/items/a")).status, 401);
  EXPECT_EQ(Ask(port_, Get("/open")).status, 200);
  for (const std::string_view wrong : {"Bearer first-kex", "Bearer first-key2", "Bearer first",
                                       "Basic first-key", "first-key", "Bearer"}) {
    const std::string field = "Authorization: " + std::string(wrong) + "\r\n";
    EXPECT_EQ(Ask(port_, Post("/echo", "x", field)).status, 401) << wrong;
  }
  EXPECT_EQ(Ask(port_, Post("/echo", "x", "Authorization: Bearer second-key\r\n")).status, 200);
  EXPECT_EQ(Ask(port_, Post("/echo", "x", "authorization: bearer first-key\r\n")).status, 200);
  keys.Replace({"third"});
  EXPECT_EQ(Ask(port_, Post("/echo", "x", "Authorization: Bearer first-key\r\n")).status, 401);
  EXPECT_EQ(Ask(port_, Post("/echo", "x", "Authorization: Bearer third\r\n")).status, 200);
}

TEST_F(ServerTest, LetsThePagesItIsToldOfCallIt) {
  ApiKeys keys({"key"});
  Start({.cors_origins = {"https://page.example"}}, &keys);
  const std::string preflight =
      "OPTIONS /echo HTTP/1.1\r\nHost: t\r\nOrigin: https://page.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n";
  const RawResponse allowed = Ask(port_, preflight);
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.Header("access-control-allow-origin"), "https://page.example");
  EXPECT_THAT(allowed.Header("access-control-allow-headers"), HasSubstr("authorization"));
  const RawResponse answer = Ask(port_, Get("/open", "Origin: https://page.example\r\n"));
  EXPECT_EQ(answer.Header("access-control-allow-origin"), "https://page.example");
  EXPECT_EQ(Ask(port_, Get("/open", "Origin: https://other.example\r\n"))
                .Header("access-control-allow-origin"),
            "");
}

TEST_F(ServerTest, CountsEachRequestOnce) {
  Start();
  const std::string echo = R"(bouquet_http_requests_total{dialect="none",route="POST /echo",)";
  const std::string unmatched = R"(bouquet_http_requests_total{dialect="none",route="unmatched",)";
  EXPECT_EQ(Metric(echo + R"(status="2xx"})"), 0);  // there before any traffic
  EXPECT_EQ(Metric(R"(bouquet_http_failures_total{reason="unknown_route"})"), 0);
  Ask(port_, Post("/echo", "a"));
  Ask(port_, Post("/echo", "b"));
  Ask(port_, Post("/echo", "c", "Content-Type: text/plain\r\n"));
  Ask(port_, Get("/nothing"));
  Ask(port_, "nonsense\r\n\r\n");
  EXPECT_EQ(Metric(echo + R"(status="2xx"})"), 2);
  EXPECT_EQ(Metric(echo + R"(status="4xx"})"), 1);
  EXPECT_EQ(Metric(unmatched + R"(status="4xx"})"), 2);
  EXPECT_EQ(Metric(R"(bouquet_http_failures_total{reason="unknown_route"})"), 1);
  EXPECT_EQ(Metric(R"(bouquet_http_failures_total{reason="unsupported_media_type"})"), 1);
  EXPECT_EQ(Metric(R"(bouquet_http_failures_total{reason="malformed_request"})"), 1);
  EXPECT_EQ(Metric(R"(bouquet_http_request_seconds_count{route="POST /echo"})"), 3);
  EXPECT_EQ(Metric("bouquet_http_connections_total"), 5);
}

}  // namespace
}  // namespace bouquet::ivy::http
