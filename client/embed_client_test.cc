// The HTTP client against a real gateway with a fake engine, and against a socket that says exactly
// what the test wants.
#include "client/embed_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/metrics.h"
#include "ivy/gateway.h"
#include "ivy/testing/fake_encoder.h"

namespace bouquet::client {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Runs what a client is asked for on this thread.
class Session {
 public:
  explicit Session(ClientOptions options) : options_(std::move(options)) {
    auto made = CreateEmbedClient(context_.get_executor(), options_);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    client_ = std::move(made).value();
  }

  EmbedReply Embed(const std::vector<EmbedInput>& inputs) {
    const PreparedRequest request = PrepareRequest(options_, inputs);
    EmbedReply reply;
    asio::co_spawn(context_, client_->Embed(request),
                   [&](const std::exception_ptr& error, EmbedReply result) {
                     EXPECT_EQ(error, nullptr);
                     reply = std::move(result);
                   });
    Finish();
    return reply;
  }

  Status Connect(size_t count) {
    Status status;
    asio::co_spawn(
        context_, client_->Connect(count),
        [&](const std::exception_ptr& /*error*/, Status result) { status = std::move(result); });
    Finish();
    return status;
  }

 private:
  void Finish() {
    context_.run();
    context_.restart();
  }

  const ClientOptions options_;
  asio::io_context context_{1};
  std::unique_ptr<EmbedClient> client_;
};

ClientOptions OptionsFor(uint16_t port, Dialect dialect = Dialect::kOpenAi) {
  ClientOptions options;
  options.url.host = "127.0.0.1";
  options.url.port = std::to_string(port);
  options.dialect = dialect;
  options.model = "fake-model";
  return options;
}

class EmbedClientTest : public ::testing::Test {
 protected:
  void Start(ivy::Config config = {}) {
    config.port = 0;
    auto gateway = ivy::Gateway::Create(config, {ivy::testing::FakeModel(encoder_, 2)}, metrics_);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = std::move(gateway).value();
    ASSERT_TRUE(gateway_->Start().ok());
    gateway_->SetReady("fake-model", {});
  }
  uint16_t port() const { return gateway_->port(); }

  Metrics metrics_;
  ivy::testing::FakeEncoder encoder_{2};
  std::unique_ptr<ivy::Gateway> gateway_;
};

TEST_F(EmbedClientTest, GetsRowsOfTextsAndIdsInEveryDialectAndEncoding) {
  Start();
  for (const Dialect dialect : {Dialect::kOpenAi, Dialect::kTei}) {
    for (const bool base64 : {true, false}) {
      ClientOptions options = OptionsFor(port(), dialect);
      options.base64 = base64;
      Session session(options);
      for (const std::vector<EmbedInput>& inputs :
           {std::vector<EmbedInput>{"say \"hi\"", "ü"},
            std::vector<EmbedInput>{std::vector<int32_t>{7, 8}, std::vector<int32_t>{9}}}) {
        const EmbedReply reply = session.Embed(inputs);
        ASSERT_TRUE(reply.status.ok()) << reply.status.ToString();
        EXPECT_EQ(OutcomeName(reply), "ok");
        EXPECT_EQ(reply.http_status, 200);
        EXPECT_EQ(reply.rows.dimensions, 2U);
        // As fake_encoder.h says: (i + 1) × 0.125 + j × 0.5.
        EXPECT_THAT(reply.rows.values, ElementsAre(0.125, 0.625, 0.25, 0.75));
        EXPECT_EQ(encoder_.last_request().inputs, inputs);
      }
    }
  }
}

TEST_F(EmbedClientTest, KeepsItsConnection) {
  Start();
  Session session(OptionsFor(port()));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(session.Embed({"text"}).status.ok());
  }
  EXPECT_THAT(metrics_.Render(), HasSubstr("bouquet_http_connections_total 1\n"));
}

TEST_F(EmbedClientTest, SendsItsKey) {
  ivy::Config config;
  config.api_keys = "secret";
  Start(config);
  ClientOptions options = OptionsFor(port());
  const EmbedReply refused = Session(options).Embed({"text"});
  EXPECT_EQ(refused.status.code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(OutcomeName(refused), "401");
  options.api_key = "secret";
  EXPECT_TRUE(Session(options).Embed({"text"}).status.ok());
}

TEST_F(EmbedClientTest, TellsARefusalWithItsRetryAfter) {
  Start();
  encoder_.FailWith(ResourceExhausted("full").WithRetryAfter(3));
  const EmbedReply reply = Session(OptionsFor(port())).Embed({"text"});
  EXPECT_EQ(reply.failure, Failure::kStatus);
  EXPECT_EQ(OutcomeName(reply), "429");
  EXPECT_TRUE(reply.has_retry_after);
  EXPECT_EQ(reply.status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(reply.status.retry_after_seconds(), 3);
  EXPECT_THAT(reply.status.message(), HasSubstr("429: "));
}

TEST_F(EmbedClientTest, GivesUpAfterItsTimeLimit) {
  Start();
  encoder_.Hold();
  ClientOptions options = OptionsFor(port());
  options.request_timeout = 20ms;
  const EmbedReply reply = Session(options).Embed({"text"});
  encoder_.Release();
  EXPECT_EQ(OutcomeName(reply), "timeout");
  EXPECT_EQ(reply.status.code(), StatusCode::kDeadlineExceeded);
}

/// Accepts connections one after the other; each gets the next of `answers` to its first request,
/// then is closed.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t size = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  uint16_t port() const { return port_; }

 private:
  void Serve() {
    for (const std::string& answer : answers_) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) {
        return;
      }
      std::string request;
      char byte = 0;
      while (!request.ends_with("}") && ::recv(socket, &byte, 1, 0) == 1) {
        request += byte;  // every body is an object, and no header ends so
      }
      ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(socket);
    }
  }

  const std::vector<std::string> answers_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

std::string Ok(std::string_view body, size_t length) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" +
         std::string(body);
}

constexpr std::string_view kOneRow = R"({"data":[{"index":0,"embedding":[1,2]}]})";

TEST_F(EmbedClientTest, TellsACutOffAnswerFromNone) {
  ScriptedServer server({Ok(kOneRow, kOneRow.size() + 5), ""});
  const EmbedReply cut = Session(OptionsFor(server.port())).Embed({"text"});
  EXPECT_EQ(OutcomeName(cut), "truncated");
  EXPECT_EQ(cut.status.code(), StatusCode::kUnavailable);
  const EmbedReply none = Session(OptionsFor(server.port())).Embed({"text"});
  EXPECT_EQ(OutcomeName(none), "closed");
}

TEST_F(EmbedClientTest, CallsAWrongNumberOfRowsMalformed) {
  ScriptedServer server({Ok(kOneRow, kOneRow.size()), Ok("hello", 5)});
  const EmbedReply reply = Session(OptionsFor(server.port())).Embed({"one", "two"});
  EXPECT_EQ(OutcomeName(reply), "malformed");
  EXPECT_EQ(reply.http_status, 200);
  EXPECT_THAT(reply.status.message(), HasSubstr("1 rows for 2 inputs"));
  EXPECT_EQ(OutcomeName(Session(OptionsFor(server.port())).Embed({"one"})), "malformed");
}

TEST_F(EmbedClientTest, ReplacesAKeptConnectionThatTheServerClosed) {
  // The first connection is closed after its answer without saying so beforehand.
  ScriptedServer server({Ok(kOneRow, kOneRow.size()), Ok(kOneRow, kOneRow.size())});
  Session session(OptionsFor(server.port()));
  const EmbedReply first = session.Embed({"text"});
  EXPECT_TRUE(first.status.ok()) << first.status.ToString();
  EXPECT_FALSE(first.reconnected);
  const EmbedReply second = session.Embed({"text"});
  EXPECT_TRUE(second.status.ok()) << second.status.ToString();
  EXPECT_TRUE(second.reconnected);
}

TEST_F(EmbedClientTest, SaysWhenNobodyListens) {
  Start();
  const uint16_t port_of_nobody = port();
  gateway_->Stop();
  gateway_.reset();
  Session session(OptionsFor(port_of_nobody));
  const EmbedReply reply = session.Embed({"text"});
  EXPECT_EQ(OutcomeName(reply), "connect");
  EXPECT_EQ(reply.status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(reply.status.message(), HasSubstr("cannot connect to 127.0.0.1:"));
  EXPECT_EQ(session.Connect(2).code(), StatusCode::kUnavailable);
}

TEST(PrepareRequestTest, WritesTheBodyThatTheDialectAsksFor) {
  ClientOptions options = OptionsFor(80);
  options.url.path = "/prefix";
  options.api_key = "k";
  const std::vector<EmbedInput> inputs{"a\n", std::vector<int32_t>{1, 2}};
  const PreparedRequest openai = PrepareRequest(options, inputs);
  EXPECT_EQ(openai.num_inputs, 2U);
  EXPECT_THAT(openai.bytes, ::testing::StartsWith("POST /prefix/v1/embeddings HTTP/1.1\r\n"));
  EXPECT_THAT(openai.bytes, HasSubstr("\r\nHost: 127.0.0.1:80\r\n"));
  EXPECT_THAT(openai.bytes, HasSubstr("\r\nAuthorization: Bearer k\r\n"));
  EXPECT_THAT(openai.bytes,
              ::testing::EndsWith("\r\n\r\n{\"input\":[\"a\\n\",[1,2]],\"model\":\"fake-model\","
                                  "\"encoding_format\":\"base64\"}"));
  options.dialect = Dialect::kTei;
  options.route = "/embed2";
  const PreparedRequest tei = PrepareRequest(options, inputs);
  EXPECT_THAT(tei.bytes, ::testing::StartsWith("POST /prefix/embed2 HTTP/1.1\r\n"));
  EXPECT_THAT(tei.bytes, ::testing::EndsWith("\r\n\r\n{\"inputs\":[\"a\\n\",[1,2]]}"));
}

TEST(CreateEmbedClientTest, RefusesAHostThatCannotBeResolved) {
  asio::io_context context(1);
  ClientOptions options;
  options.url.host = "no-such-host.invalid";
  options.url.port = "1";
  EXPECT_EQ(CreateEmbedClient(context.get_executor(), options).code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace bouquet::client
