#include "ivy/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "base/json.h"
#include "ivy/testing/fake_encoder.h"
#include "ivy/testing/raw_client.h"
#include "ivy/testing/scrape.h"
#include "testing/eventually.h"
#include "testing/test_data.h"

namespace bouquet::ivy {
namespace {

using namespace std::chrono_literals;
using bouquet::testing::Eventually;
using ivy::testing::Ask;
using ivy::testing::FakeEncoder;
using ivy::testing::FakeModel;
using ivy::testing::Get;
using ivy::testing::Post;
using ivy::testing::RawClient;
using ivy::testing::RawResponse;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int32_t kWidth = 4;

class GatewayTest : public ::testing::Test {
 protected:
  void Start(Config config = {}, bool ready = true) {
    config.port = 0;
    Result<std::unique_ptr<Gateway>> gateway =
        Gateway::Create(config, {FakeModel(encoder_, kWidth)}, metrics_);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = std::move(gateway).value();
    ASSERT_TRUE(gateway_->Start().ok());
    port_ = gateway_->port();
    if (ready) {
      gateway_->SetReady("fake-model", {.step_tokens = 512, .max_batch_sequences = 64});
    }
  }

  RawResponse Embeddings(std::string_view body, std::string_view headers = "") {
    return Ask(port_, Post("/v1/embeddings", body, headers));
  }
  RawResponse Embed(std::string_view body, std::string_view headers = "") {
    return Ask(port_, Post("/embed", body, headers));
  }

  double Metric(const std::string& series) {
    return ivy::testing::SeriesValue(Ask(port_, Get("/metrics")).body, series);
  }

  FakeEncoder encoder_{kWidth};
  Metrics metrics_;
  std::unique_ptr<Gateway> gateway_;
  uint16_t port_ = 0;
};

TEST_F(GatewayTest, AnswersOpenAiEmbeddings) {
  Start();
  const RawResponse response = Embeddings(R"({"model":"fake-model","input":["ab","abc"]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"object":"list","data":[)"
            R"({"object":"embedding","index":0,"embedding":[0.125,0.625,1.125,1.625]},)"
            R"({"object":"embedding","index":1,"embedding":[0.25,0.75,1.25,1.75]}],)"
            R"("model":"fake-model","usage":{"prompt_tokens":5,"total_tokens":5}})");
  EXPECT_EQ(Ask(port_, Post("/embeddings", R"({"input":"ab"})")).status, 200);
  EXPECT_EQ(Ask(port_, Post("/openai/v1/embeddings", R"({"input":"ab"})")).status, 200);
}

TEST_F(GatewayTest, AnswersTeiEmbed) {
  Start();
  for (const std::string_view path : {"/embed", "/", "/tei/embed", "/tei/"}) {
    const RawResponse response = Ask(port_, Post(path, R"({"inputs":["ab",[1,2,3]]})"));
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.body, "[[0.125,0.625,1.125,1.625],[0.25,0.75,1.25,1.75]]") << path;
  }
  EXPECT_EQ(Embed(R"({"inputs":"one"})").body, "[[0.125,0.625,1.125,1.625]]");
}

TEST_F(GatewayTest, AnswersWhatTokensTextsHave) {
  Start();
  const std::string tokens = R"([[{"id":0,"text":"<s>","special":true,"start":null,"stop":null},)"
                             R"({"id":97,"text":"a","special":false,"start":0,"stop":1}]])";
  EXPECT_EQ(Ask(port_, Post("/tokenize", R"({"inputs":"a"})")).body, tokens);
  EXPECT_EQ(Ask(port_, Post("/tei/tokenize", R"({"inputs":["a"]})")).body, tokens);
  EXPECT_EQ(Ask(port_, Post("/tokenize", R"({"inputs":["a","ab"],"count_only":true})")).body,
            "[2,3]");
  const std::string vllm = R"({"count":2,"max_model_len":256,"tokens":[0,97],"token_strs":null})";
  EXPECT_EQ(Ask(port_, Post("/tokenize", R"({"prompt":"a"})")).body, vllm);
  EXPECT_EQ(Ask(port_, Post("/vllm/tokenize", R"({"prompt":"a"})")).body, vllm);

  Ask(port_, Post("/tokenize", R"({"inputs":"a","add_special_tokens":false,"prompt_name":"query"})",
                  "x-bouquet-class: bulk\r\n"));
  const TextRequest request = encoder_.last_text_request();
  EXPECT_EQ(request.prompt, "query: ");
  EXPECT_FALSE(request.add_special_tokens);
  EXPECT_EQ(request.field, "inputs");
  EXPECT_FALSE(request.field_is_list);
  EXPECT_EQ(request.traffic_class, model::TrafficClass::kBulk);
}

TEST_F(GatewayTest, AnswersTheTextsOfTokens) {
  Start();
  EXPECT_EQ(Ask(port_, Post("/decode", R"({"ids":[[0,97],[98]]})")).body, R"(["a","b"])");
  EXPECT_EQ(Ask(port_, Post("/tei/decode", R"({"ids":[0,97],"skip_special_tokens":false})")).body,
            R"(["<s>a"])");
  EXPECT_EQ(Ask(port_, Post("/detokenize", R"({"tokens":[0,97]})")).body, R"({"prompt":"<s>a"})");
  EXPECT_EQ(Ask(port_, Post("/vllm/detokenize", R"({"tokens":[97]})")).body, R"({"prompt":"a"})");
}

TEST_F(GatewayTest, RefusesToTokenizeInTheShapeOfWhoeverAsks) {
  Start();
  const RawResponse tei = Ask(port_, Post("/tokenize", R"({"inputs":7})"));
  EXPECT_EQ(tei.status, 422);
  EXPECT_THAT(tei.body, HasSubstr(R"("error_type":"Validation")"));
  const RawResponse vllm = Ask(port_, Post("/tokenize", R"({"messages":[]})"));
  EXPECT_EQ(vllm.status, 400);
  EXPECT_THAT(vllm.body, HasSubstr(R"("param":"messages")"));
  encoder_.FailWith(OutOfRange("too many tokens", "prompt"));
  EXPECT_EQ(Ask(port_, Post("/tokenize", R"({"prompt":"a"})")).status, 413);
}

TEST_F(GatewayTest, SaysTheSameInBase64AsInDecimals) {
  Start();
  const RawResponse response = Embeddings(R"({"input":"ab","encoding_format":"base64"})");
  // 0.125, 0.625, 1.125, 1.625 are 3E000000, 3F200000, 3F900000, 3FD00000.
  EXPECT_THAT(response.body, HasSubstr(R"("embedding":"AAAAPgAAID8AAJA/AADQPw==")"));
}

TEST_F(GatewayTest, PassesOnWhatWasAsked) {
  Start();
  Embeddings(R"({"input":[[1,2],[3]],"dimensions":2,"normalize":false,"prompt_name":"query",)"
             R"("truncate":true,"truncation_direction":"Left"})",
             "x-bouquet-class: bulk\r\nx-request-timeout-ms: 1000\r\n");
  const EncodeRequest request = encoder_.last_request();
  ASSERT_EQ(request.inputs.size(), 2U);
  EXPECT_EQ(std::get<std::vector<int32_t>>(request.inputs[0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(request.field, "input");
  EXPECT_TRUE(request.field_is_list);
  EXPECT_EQ(request.output.dimensions, 2U);
  EXPECT_FALSE(request.output.normalize);
  EXPECT_EQ(request.prompt, "query: ");
  EXPECT_EQ(request.over_length, text::OverLength::kTruncate);
  EXPECT_EQ(request.truncation_side, text::TruncationSide::kLeft);
  EXPECT_EQ(request.max_tokens, 256);
  EXPECT_EQ(request.traffic_class, model::TrafficClass::kBulk);
  const auto left = request.deadline.at - std::chrono::steady_clock::now();
  EXPECT_LE(left, 1000ms);

  Embed(R"({"inputs":"a","truncate":false})");
  EXPECT_EQ(encoder_.last_request().over_length, text::OverLength::kError);
  EXPECT_FALSE(encoder_.last_request().field_is_list);
  Embed(R"({"inputs":"a"})");
  EXPECT_EQ(encoder_.last_request().over_length, text::OverLength::kTruncate);
  EXPECT_TRUE(encoder_.last_request().output.normalize);
  Embeddings(R"({"input":"a"})");
  EXPECT_EQ(encoder_.last_request().over_length, text::OverLength::kError);
  Embeddings(R"({"input":"a","truncate_prompt_tokens":9,"truncation_side":"left"})");
  EXPECT_EQ(encoder_.last_request().over_length, text::OverLength::kTruncate);
  EXPECT_EQ(encoder_.last_request().max_tokens, 9);
  Ask(port_, Post("/tei/v1/embeddings", R"({"input":"a"})"));
  EXPECT_EQ(encoder_.last_request().over_length, text::OverLength::kTruncate);
}

TEST_F(GatewayTest, SaysWhereTheTimeWentAndWhatWasCut) {
  Start();
  encoder_.ChangeRows([](EncodedRows& rows) {
    rows.truncated[0] = 1;
    rows.token_counts[0] = 256;
  });
  const RawResponse response = Embeddings("{\"input\":[\"\xE4\xBD\xA0\xE5\xA5\xBD\",\"b\"]}");
  EXPECT_THAT(response.body, HasSubstr(R"("truncated":true,"token_count":256})"));
  EXPECT_EQ(response.Header("x-bouquet-truncated"), "1");
  EXPECT_EQ(response.Header("x-compute-type"), "cpu");
  EXPECT_EQ(response.Header("x-compute-characters"), "3");
  EXPECT_EQ(response.Header("x-compute-tokens"), "257");
  EXPECT_EQ(response.Header("x-tokenization-time"), "1");
  EXPECT_EQ(response.Header("x-queue-time"), "2");
  EXPECT_EQ(response.Header("x-inference-time"), "3");
  EXPECT_EQ(response.Header("x-compute-time"), "7");
  EXPECT_NE(response.Header("x-total-time"), "");
  EXPECT_THAT(response.Header("server-timing"), HasSubstr("tokenize;dur=1.500, queue;dur=2.500"));
  encoder_.ChangeRows({});
  EXPECT_EQ(Embed(R"({"inputs":"a"})").Header("x-bouquet-truncated"), "");
}

/// What every test of bad input holds: the answer, its shape, and that the next request is served.
struct BadBody {
  std::string_view body;
  int openai_status;
  int tei_status;
  std::string_view part;  // of the message
};

TEST_F(GatewayTest, RefusesBadBodiesInBothShapesAndServesTheNext) {
  Start({.max_inputs_per_request = 3});
  RawClient client(port_);
  const std::string deep = R"({"input":)" + std::string(40, '[') + std::string(40, ']') + "}";
  const std::vector<BadBody> bodies = {
      {"", 400, 400, "byte 0"},
      {R"({"input":"x")", 400, 400, "byte 1"},
      {R"(["input"])", 400, 422, "must be a JSON object"},
      {deep, 400, 400, "--max-json-depth"},
      {"{\"input\":\"a\xFF\"}", 400, 400, "invalid UTF-8"},
      {R"({"input":"\ud800"})", 400, 400, "lone surrogate"},
      {R"({"input":""})", 400, 400, "input is empty"},
      {R"({"input":[]})", 400, 400, "input is empty"},
      {R"({"input":["a",""]})", 400, 400, "[1]: input is empty"},
      {R"({"input":["a","b","c","d"]})", 413, 413, "limit 3 (--max-inputs-per-request)"},
      {R"({"input":7})", 400, 422, "not 7"},
      {R"({"input":[1,-2]})", 400, 422, "[1]: token ids must be integers"},
      {R"({"input":[2147483648]})", 400, 422, "2147483648"},
      {R"({"input":[1.0]})", 400, 422, "[0]: token ids"},
      {R"({"input":"a","dimensions":0})", 400, 422, "dimensions"},
      {R"({"input":"a","dimensions":-1})", 400, 422, "dimensions"},
      {R"({"input":"a","dimensions":5})", 400, 422, "1..4, the model's width, not 5"},
      {R"({"input":"a","normalize":1})", 400, 422, "true or false, not 1"},
      {R"({"input":"a","truncation_direction":"up"})", 400, 422, "not \\\"up\\\""},
      {R"({"input":"a","prompt_name":"nope"})", 400, 422, "passage, query"},
      {R"({"input":"a","model":"nope"})", 404, 404, "served: fake-model"},
      {R"({"input":"a","input":"b"})", 400, 422, "twice"},
      {R"({"other":1})", 400, 422, "required"},
  };
  for (const BadBody& bad : bodies) {
    std::string tei_body(bad.body);
    for (size_t at = 0; (at = tei_body.find("\"input\"", at)) != std::string::npos; at += 8) {
      tei_body.replace(at, 7, "\"inputs\"");
    }
    client.Send(Post("/v1/embeddings", bad.body) + Post("/embed", tei_body) +
                Post("/embed", R"({"inputs":"next"})"));
    const std::optional<RawResponse> openai = client.Read();
    const std::optional<RawResponse> tei = client.Read();
    const std::optional<RawResponse> next = client.Read();
    ASSERT_TRUE(openai && tei && next) << bad.body;
    EXPECT_EQ(openai->status, bad.openai_status) << bad.body << openai->body;
    EXPECT_THAT(openai->body, HasSubstr(bad.part)) << bad.body;
    EXPECT_THAT(openai->body, HasSubstr(R"({"error":{"message":)"));
    EXPECT_THAT(openai->body, HasSubstr(R"("param":)"));
    EXPECT_EQ(tei->status, bad.tei_status) << tei_body << tei->body;
    EXPECT_THAT(tei->body, HasSubstr(bad.part)) << tei_body;
    EXPECT_THAT(tei->body, HasSubstr(R"(,"error_type":)"));
    EXPECT_TRUE(JsonDocument::Parse(openai->body, "error").ok());
    EXPECT_TRUE(JsonDocument::Parse(tei->body, "error").ok());
    EXPECT_NE(openai->Header("x-request-id"), "");
    EXPECT_EQ(next->status, 200) << bad.body;
  }
  EXPECT_EQ(encoder_.num_requests(), static_cast<int64_t>(bodies.size()));
}

TEST_F(GatewayTest, MapsWhatTheEncoderSays) {
  Start();
  struct Case {
    Status status;
    int openai_status;
    int tei_status;
    std::string_view part;
  };
  for (const Case& one : std::vector<Case>{
           {InvalidArgument("input is longer than the model allows: 300 tokens, limit 256",
                            "input[0]"),
            400, 422, "input[0]: input is longer than the model allows: 300 tokens, limit 256"},
           {InvalidArgument("token id is out of range: 30522, vocabulary 0..30521", "input[0][1]"),
            400, 422, "input[0][1]"},
           {OutOfRange("too many tokens: 400000, limit 300000 (--max-tokens-per-request)"), 413,
            413, "--max-tokens-per-request"},
           {ResourceExhausted("queue is full: 5000 tokens, 3100 ms, limit 2000 ms"), 429, 429,
            "queue is full"},
           {DeadlineExceeded("deadline passed in the queue"), 504, 504, "in the queue"},
           {Unavailable("replica stopped"), 503, 503, "replica stopped"},
           {Unimplemented("the model takes token ids only"), 501, 501, "token ids only"},
           {FailedPrecondition("not offered"), 400, 422, "not offered"},
           {Internal("secret"), 500, 500, "internal error"},
       }) {
    encoder_.FailWith(one.status);
    const RawResponse openai = Embeddings(R"({"input":["a"]})");
    const RawResponse tei = Embed(R"({"inputs":["a"]})");
    EXPECT_EQ(openai.status, one.openai_status) << one.status.ToString();
    EXPECT_EQ(tei.status, one.tei_status) << one.status.ToString();
    EXPECT_THAT(openai.body, HasSubstr(one.part));
    EXPECT_THAT(tei.body, HasSubstr(one.part));
    EXPECT_THAT(openai.body, Not(HasSubstr("secret")));
    const bool again = openai.status == 429 || openai.status == 503;
    EXPECT_EQ(openai.Header("retry-after"), again ? "1" : "");
  }
  encoder_.FailWith(Status());
  EXPECT_EQ(Embeddings(R"({"input":"a"})").status, 200);
}

TEST_F(GatewayTest, NeverWritesARowThatIsNotFinite) {
  Start();
  encoder_.ChangeRows([](EncodedRows& rows) {
    if (rows.token_counts.size() > 2) {
      rows.values[rows.dimensions] = std::numeric_limits<float>::quiet_NaN();  // of item 1
      rows.statuses[2] = Internal("marked by the engine");
    }
  });
  const std::string_view body = R"({"input":["a","b","c","d"]})";
  const RawResponse refused = Embeddings(body);
  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.body, HasSubstr("2 of 4 inputs, at 1, 2"));
  EXPECT_EQ(Embed(R"({"inputs":["a","b","c"]})").status, 500);
  EXPECT_EQ(Embed(R"({"inputs":["a","b","c"]})", "x-bouquet-partial: allow\r\n").status, 500);

  const RawResponse partial = Embeddings(body, "x-bouquet-partial: allow\r\n");
  EXPECT_EQ(partial.status, 200);
  EXPECT_TRUE(JsonDocument::Parse(partial.body, "answer").ok());
  EXPECT_THAT(partial.body, HasSubstr(R"({"object":"error","index":1,"error":{)"));
  EXPECT_THAT(partial.body, HasSubstr(R"({"object":"error","index":2,"error":{)"));
  EXPECT_THAT(partial.body, HasSubstr(R"({"object":"embedding","index":3)"));
  EXPECT_THAT(partial.body, Not(HasSubstr("nan")));
  EXPECT_EQ(Embeddings(R"({"input":["a","b","c"],"partial":true})").status, 200);
  EXPECT_EQ(Embeddings(R"({"input":["a"]})").status, 200);
}

TEST_F(GatewayTest, GivesItemsThatFailedAlikeTheirOwnStatus) {
  Start();
  encoder_.ChangeRows([](EncodedRows& rows) {
    rows.statuses[1] = DeadlineExceeded("the deadline passed in the engine");
  });
  const RawResponse response = Embeddings(R"({"input":["a","b"]})");
  EXPECT_EQ(response.status, 504);
  EXPECT_THAT(response.body, HasSubstr("in the engine: 1 of 2 inputs, at 1"));
}

TEST_F(GatewayTest, RefusesServiceHeadersThatMeanNothing) {
  Start();
  const std::string_view body = R"({"input":"a"})";
  for (const std::string_view header :
       {"x-request-timeout-ms: 0", "x-request-timeout-ms: -1", "x-request-timeout-ms: 1.5",
        "x-request-timeout-ms: soon", "x-bouquet-class: urgent", "x-bouquet-partial: yes"}) {
    const RawResponse response = Embeddings(body, std::string(header) + "\r\n");
    EXPECT_EQ(response.status, 400) << header;
    EXPECT_THAT(response.body, HasSubstr(header.substr(0, header.find(':')))) << header;
  }
}

TEST_F(GatewayTest, BoundsTheClientsDeadlineByTheFlag) {
  Start({.request_timeout_ms = 60});
  encoder_.Hold();
  const RawResponse response = Embeddings(R"({"input":"a"})", "x-request-timeout-ms: 1000000\r\n");
  EXPECT_EQ(response.status, 504);
  EXPECT_THAT(response.body, HasSubstr("in the queue"));
  EXPECT_THAT(response.body, HasSubstr("timeout_error"));
}

TEST_F(GatewayTest, CancelsWhatNobodyWaitsForAndCountsIt) {
  Start();
  encoder_.Hold();
  {
    RawClient client(port_);
    client.Send(Post("/v1/embeddings", R"({"input":"a"})"));
    ASSERT_TRUE(Eventually([&] { return encoder_.num_waiting() == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return encoder_.num_cancelled() == 1; }));
  EXPECT_TRUE(
      Eventually([&] { return Metric(R"(bouquet_http_cancelled_total{stage="handling"})") == 1; }));
  encoder_.Release();
  EXPECT_EQ(Embeddings(R"({"input":"a"})").status, 200);
}

TEST_F(GatewayTest, IsLiveAtOnceAndReadyWhenToldSo) {
  Start({}, false);
  EXPECT_EQ(Ask(port_, Get("/health/live")).status, 200);
  gateway_->SetLoading("fake-model", "reading weights, 40 %");
  for (const std::string_view path : {"/health", "/health/ready", "/ping", "/", "/tei/health"}) {
    const RawResponse response = Ask(port_, Get(path));
    EXPECT_EQ(response.status, 503) << path;
    EXPECT_THAT(response.body, HasSubstr("fake-model: reading weights, 40 %")) << path;
    EXPECT_EQ(response.Header("retry-after"), "1");
  }
  const RawResponse early = Embeddings(R"({"input":"a"})");
  EXPECT_EQ(early.status, 503);
  EXPECT_THAT(early.body, HasSubstr("not ready: reading weights"));
  EXPECT_EQ(early.Header("retry-after"), "1");
  gateway_->SetReady("fake-model", {});
  for (const std::string_view path : {"/health", "/health/ready", "/ping", "/"}) {
    EXPECT_EQ(Ask(port_, Get(path)).status, 200) << path;
  }
  EXPECT_EQ(Embeddings(R"({"input":"a"})").status, 200);
}

TEST_F(GatewayTest, IsNotReadyWhileAModelMakesNoProgress) {
  std::atomic<bool> stuck = false;
  ServedModel served = FakeModel(encoder_, kWidth);
  served.progress = [&] {
    return stuck ? Readiness{false, "a step is overdue"} : Readiness{true, ""};
  };
  Result<std::unique_ptr<Gateway>> gateway =
      Gateway::Create({.port = 0}, {std::move(served)}, metrics_);
  ASSERT_TRUE(gateway.ok());
  ASSERT_TRUE((*gateway)->Start().ok());
  (*gateway)->SetReady("fake-model", {});
  port_ = (*gateway)->port();
  EXPECT_EQ(Ask(port_, Get("/health")).status, 200);
  stuck = true;
  EXPECT_THAT(Ask(port_, Get("/health")).body, HasSubstr("a step is overdue"));
  encoder_.FailWith(ResourceExhausted("full").WithRetryAfter(7));
  EXPECT_EQ(Embeddings(R"({"input":"a"})").Header("retry-after"), "7");
}

TEST_F(GatewayTest, DrainsWhileBusy) {
  Start({.http_threads = 2, .drain_delay_ms = 150, .drain_timeout_ms = 5000});
  encoder_.Hold();
  RawClient running(port_);
  running.Send(Post("/v1/embeddings", R"({"input":"a"})"));
  ASSERT_TRUE(Eventually([&] { return encoder_.num_waiting() == 1; }));
  std::atomic<bool> drained = false;
  std::thread drain([&] { drained = gateway_->Drain(); });
  ASSERT_TRUE(Eventually([&] { return Ask(port_, Get("/health/ready")).status == 503; }));
  EXPECT_THAT(Ask(port_, Get("/health/ready")).body, HasSubstr("shutting down"));
  EXPECT_EQ(Ask(port_, Get("/health/live")).status, 200);
  ASSERT_TRUE(Eventually(
      [&] { return Embed(R"({"inputs":"a"})", "x-request-timeout-ms: 1\r\n").status == 503; }));
  EXPECT_FALSE(drained);
  encoder_.Release();
  const std::optional<RawResponse> response = running.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 200);
  drain.join();
  EXPECT_TRUE(drained);
  gateway_->Stop();
}

TEST_F(GatewayTest, GivesUpDrainingAfterItsTimeout) {
  Start({.drain_timeout_ms = 50});
  encoder_.Hold();
  RawClient stuck(port_);
  stuck.Send(Post("/embed", R"({"inputs":"a"})"));
  ASSERT_TRUE(Eventually([&] { return encoder_.num_waiting() == 1; }));
  EXPECT_FALSE(gateway_->Drain());
  gateway_->Stop();
}

TEST_F(GatewayTest, ListsItsModels) {
  Start();
  const RawResponse list = Ask(port_, Get("/v1/models"));
  EXPECT_THAT(list.body,
              HasSubstr(R"({"object":"list","data":[{"id":"fake-model","object":"model")"));
  EXPECT_THAT(list.body, HasSubstr(R"("id":"fake-alias")"));
  EXPECT_THAT(Ask(port_, Get("/v1/models/fake-alias")).body, HasSubstr(R"({"id":"fake-alias")"));
  EXPECT_THAT(Ask(port_, Get("/v1/models/fake%2Dmodel")).body, HasSubstr(R"("id":"fake-model")"));
  const RawResponse unknown = Ask(port_, Get("/v1/models/org/other"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("model_not_found"));
  EXPECT_EQ(Embeddings(R"({"model":"fake-alias","input":"a"})").status, 200);
  EXPECT_EQ(Embeddings(R"({"model":"","input":"a"})").status, 200);
}

TEST_F(GatewayTest, ShowsTheLimitsInForce) {
  Start({.max_inputs_per_request = 77, .over_length = OverLengthPolicy::kError});
  const RawResponse response = Ask(port_, Get("/info"));
  const Result<JsonDocument> info = JsonDocument::Parse(response.body, "info");
  ASSERT_TRUE(info.ok()) << response.body;
  for (const std::string_view field :
       {"model_id", "model_sha", "model_dtype", "served_model_name", "model_type",
        "max_concurrent_requests", "max_input_length", "max_batch_tokens", "max_batch_requests",
        "max_client_batch_size", "auto_truncate", "tokenization_workers", "version", "sha",
        "docker_label"}) {
    simdjson::dom::element value;
    EXPECT_EQ(info->root().at_key(field).get(value), simdjson::SUCCESS) << field;
  }
  EXPECT_THAT(response.body, HasSubstr(R"("model_type":{"embedding":{"pooling":"mean"}})"));
  EXPECT_THAT(response.body, HasSubstr(R"("max_input_length":256)"));
  EXPECT_THAT(response.body, HasSubstr(R"("max_client_batch_size":77)"));
  EXPECT_THAT(response.body, HasSubstr(R"("max_batch_tokens":512)"));
  EXPECT_THAT(response.body, HasSubstr(R"("auto_truncate":false)"));
  EXPECT_THAT(response.body, HasSubstr(R"("over_length":"error")"));
}

TEST_F(GatewayTest, CountsWithExactDeltas) {
  Start();
  const std::string requests =
      R"(bouquet_http_requests_total{dialect="openai",route="POST /v1/embeddings",status=)";
  const std::string model = R"({model="fake-model"})";
  EXPECT_EQ(Metric(requests + R"("2xx"})"), 0);
  EXPECT_EQ(Metric("bouquet_inputs_total" + model), 0);
  encoder_.ChangeRows([](EncodedRows& rows) { rows.truncated.back() = 1; });
  Embeddings(R"({"input":["ab","abc"]})");
  Embeddings(R"({"input":["a"]})");
  Embeddings(R"({"input":[""]})");
  Embed(R"({"inputs":"four"})");
  EXPECT_EQ(Metric(requests + R"("2xx"})"), 2);
  EXPECT_EQ(Metric(requests + R"("4xx"})"), 1);
  EXPECT_EQ(
      Metric(R"(bouquet_http_requests_total{dialect="tei",route="POST /embed",status="2xx"})"), 1);
  EXPECT_EQ(Metric(R"(bouquet_http_failures_total{reason="empty_input"})"), 1);
  EXPECT_EQ(Metric("bouquet_inputs_total" + model), 4);
  EXPECT_EQ(Metric("bouquet_tokens_total" + model), 10);
  EXPECT_EQ(Metric("bouquet_truncated_inputs_total" + model), 3);
  EXPECT_EQ(Metric(R"(bouquet_request_stage_seconds_count{model="fake-model",stage="queue"})"), 3);
}

TEST_F(GatewayTest, ReadsItsKeysAgainWhenTold) {
  const bouquet::testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "keys").string();
  std::ofstream(path) << "# comment\n\n  one \n";
  Start({.api_key_file = path});
  const std::string_view body = R"({"input":"a"})";
  EXPECT_EQ(Embeddings(body).status, 401);
  EXPECT_EQ(Embeddings(body, "Authorization: Bearer one\r\n").status, 200);
  EXPECT_EQ(Ask(port_, Get("/v1/models")).status, 401);
  EXPECT_EQ(Ask(port_, Get("/health")).status, 200);
  EXPECT_EQ(Ask(port_, Get("/metrics")).status, 200);
  EXPECT_EQ(Ask(port_, Get("/openapi.json")).status, 200);
  std::ofstream(path) << "two\n";
  ASSERT_TRUE(gateway_->Reload({.port = 0, .api_key_file = path}).ok());
  EXPECT_EQ(Embeddings(body, "Authorization: Bearer one\r\n").status, 401);
  EXPECT_EQ(Embeddings(body, "Authorization: Bearer two\r\n").status, 200);
  std::ofstream(path) << "\n";
  EXPECT_FALSE(gateway_->Reload({.port = 0, .api_key_file = path}).ok());
  EXPECT_EQ(Embeddings(body, "Authorization: Bearer two\r\n").status, 200);
  EXPECT_FALSE(gateway_->Reload({.port = 0}).ok());  // open from now on? not by accident
  EXPECT_EQ(Embeddings(body).status, 401);
}

TEST_F(GatewayTest, GoesOverToOtherLimits) {
  Start({.max_body_bytes = 4096});
  const std::string long_body = R"({"input":")" + std::string(5000, 'a') + R"("})";
  const std::string two_inputs = R"({"input":["a","b"]})";
  EXPECT_EQ(Embeddings(long_body).status, 413);
  EXPECT_EQ(Embeddings(two_inputs).status, 200);
  ASSERT_TRUE(
      gateway_->Reload({.port = 0, .max_body_bytes = 8192, .max_inputs_per_request = 1}).ok());
  EXPECT_EQ(Embeddings(long_body).status, 200);
  EXPECT_EQ(Embeddings(two_inputs).status, 413);
  EXPECT_THAT(Ask(port_, Get("/info")).body, HasSubstr(R"("max_body_bytes":8192)"));
}

TEST_F(GatewayTest, KeepsItsSettingsWhenNewOnesAreBad) {
  Start({.max_inputs_per_request = 1});
  const Status bad = gateway_->Reload({.port = 0, .max_inputs_per_request = 0});
  EXPECT_EQ(bad.field(), "max-inputs-per-request");
  const Status fixed = gateway_->Reload({.port = 0, .http_threads = 3});
  EXPECT_EQ(fixed.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(fixed.message(), HasSubstr("needs a restart: --http-threads"));
  EXPECT_EQ(Embeddings(R"({"input":["a","b"]})").status, 413);
}

TEST_F(GatewayTest, LetsARequestEndWithWhatItBeganWith) {
  Start({.http_threads = 2});
  encoder_.Hold();
  RawClient running(port_);
  running.Send(Post("/v1/embeddings", R"({"input":"a"})"));
  ASSERT_TRUE(Eventually([&] { return encoder_.num_waiting() == 1; }));
  FakeEncoder other(kWidth);
  ServedModel next = FakeModel(other, kWidth);
  next.folder.prompts.by_name = {{"question", "question: "}};
  gateway_->Replace(std::move(next));
  EXPECT_EQ(Embed(R"({"inputs":"a","prompt_name":"question"})").status, 200);
  EXPECT_EQ(other.last_request().prompt, "question: ");
  EXPECT_EQ(Embed(R"({"inputs":"a","prompt_name":"query"})").status, 422);
  encoder_.Release();
  const std::optional<RawResponse> response = running.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 200);
  gateway_->Stop();
}

TEST_F(GatewayTest, ProtectsMetricsWhenAsked) {
  Start({.api_keys = "k", .protect_metrics = true});
  EXPECT_EQ(Ask(port_, Get("/metrics")).status, 401);
  EXPECT_EQ(Ask(port_, Get("/metrics", "Authorization: Bearer k\r\n")).status, 200);
}

TEST(GatewayCreateTest, RefusesWhatCannotBeServed) {
  Metrics metrics;
  FakeEncoder encoder(kWidth);
  EXPECT_FALSE(Gateway::Create({}, {}, metrics).ok());
  EXPECT_FALSE(Gateway::Create({.max_body_bytes = 1}, {FakeModel(encoder, kWidth)}, metrics).ok());
  ServedModel twice = FakeModel(encoder, kWidth);
  twice.aliases = {twice.name};
  EXPECT_FALSE(Gateway::Create({}, {std::move(twice)}, metrics).ok());
  EXPECT_FALSE(
      Gateway::Create({.api_key_file = "/no/such/file"}, {FakeModel(encoder, kWidth)}, metrics)
          .ok());
}

}  // namespace
}  // namespace bouquet::ivy
