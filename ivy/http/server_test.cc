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
  StartWith({.max_body_bytes = 2000});
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
  StartWith({.max_body_bytes = 2000});
  RawClient client(port_);
  client.Send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    client.Send("3e8\r\n" + std::string(1000, 'x') + "\r\n");
  }
  EXPECT_EQ(client.Read().value_or(RawResponse()).status, 413);
  ExpectServes();
}

TEST_F(ServerTest, GetsItsRefusalThroughToAClientThatKeepsSending) {
  StartWith({.max_body_bytes = 2000});
  RawClient client(port_);
  client.Send(Post("/echo", std::string(8 << 20, 'x')));
  EXPECT_EQ(client.Read().value_or(RawResponse()).status, 413);
}

TEST_F(ServerTest, RefusesHeadersThatAreTooLong) {
  StartWith({.max_header_bytes = 2048});
  const RawResponse response = Ask(port_, Get("/open", "X: " + std::string(5000, 'x') + "\r\n"));
  EXPECT_EQ(response.status, 431);
  EXPECT_THAT(response.body, HasSubstr("--max-header-bytes"));
  EXPECT_EQ(Ask(port_, Get("/" + std::string(5000, 'x'))).status, 431);
  ExpectServes();
}

TEST_F(ServerTest, EndsRequestsThatDoNotCompleteInTime) {
  StartWith({.read_timeout = 100ms});
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
  StartWith({.read_timeout = 150ms});
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
  StartWith({.idle_timeout = 80ms});
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
  StartWith({.max_body_bytes = 2000});
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
  EXPECT_THAT(Ask(port_, Get("/not\xFFhing")).body, HasSubstr("/not?hing"));
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

}  // namespace
}  // namespace bouquet::ivy::http
