#include "ivy/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "ivy/http/server_fixture.h"
#include "ivy/testing/raw_client.h"
#include "testing/eventually.h"

namespace bouquet::ivy::http {
namespace {

using namespace std::chrono_literals;
using bouquet::testing::Eventually;
using ivy::testing::Ask;
using ivy::testing::Get;
using ivy::testing::Post;
using ivy::testing::RawClient;
using ivy::testing::RawResponse;
using ::testing::HasSubstr;

/// How many, how long, who, and how it ends; server_test.cc has the protocol.
class ServerLimitsTest : public ServerTest {};

TEST_F(ServerLimitsTest, CancelsTheRequestOfAClientThatHangsUp) {
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

TEST_F(ServerLimitsTest, AnswersAClientThatOnlyHasNothingMoreToSay) {
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

TEST_F(ServerLimitsTest, CountsAClientThatLeavesBeforeItsRequestIsComplete) {
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

TEST_F(ServerLimitsTest, GivesUpOnAClientThatDoesNotRead) {
  StartWith({.write_timeout = 200ms, .slowest_bytes_per_second = 1 << 30});
  RawClient client(port_, 4096);
  client.Send(Post("/large", "64000000"));
  EXPECT_TRUE(
      Eventually([&] { return Metric(R"(bouquet_http_cancelled_total{stage="writing"})") == 1; }));
  EXPECT_TRUE(server_->WaitUntilIdle(5s));
  ExpectServes();
}

TEST_F(ServerLimitsTest, RefusesConnectionsOverTheLimitPolitely) {
  StartWith({.max_connections = 2});
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

TEST_F(ServerLimitsTest, LimitsDataRequestsInProgressButNotOthers) {
  StartWith({.max_concurrent_requests = 2});
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

TEST_F(ServerLimitsTest, LimitsTheBytesOfBodiesHeldTogether) {
  StartWith({.max_body_bytes = 1 << 20, .max_buffered_bytes = 1 << 20});
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

TEST_F(ServerLimitsTest, FinishesWhatItHadWhenItRefusesTheRest) {
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

TEST_F(ServerLimitsTest, StopsWithConnectionsOpenAndHandlersWaiting) {
  Start({.num_threads = 2});
  RawClient idle(port_);
  RawClient waiting(port_);
  waiting.Send(Post("/hold", "x"));
  ASSERT_TRUE(Eventually([&] { return num_held_ == 1; }));
  server_.reset();
  EXPECT_TRUE(idle.ReadsEnd());
}

TEST_F(ServerLimitsTest, SaysWhenThePortIsInUse) {
  Start();
  Metrics metrics;
  Server second({.port = port_}, Routes(), no_keys_, metrics);
  const Status status = second.Start();
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(std::to_string(port_)));
  EXPECT_EQ(status.field(), "port");
  ExpectServes();
}

TEST_F(ServerLimitsTest, SaysWhenTheHostDoesNotExist) {
  Server server({.host = "no.such.host.invalid", .port = 0}, Routes(), no_keys_, metrics_);
  const Status status = server.Start();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "host");
}

TEST_F(ServerLimitsTest, AsksForAKeyWhereOneIsNeeded) {
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

TEST_F(ServerLimitsTest, LetsThePagesItIsToldOfCallIt) {
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

TEST_F(ServerLimitsTest, CountsEachRequestOnce) {
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
