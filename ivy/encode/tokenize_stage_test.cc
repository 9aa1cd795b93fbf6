#include "ivy/encode/tokenize_stage.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "testing/fake_clock.h"
#include "testing/run_coroutine.h"
#include "testing/tiny_tokenizer.h"

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kTinyCls;
using testing::kTinyIvy;
using testing::kTinyRose;
using testing::kTinySep;
using testing::kTinyTulip;
using testing::RunCoroutine;
using ::testing::StartsWith;

class TokenizeStageTest : public ::testing::Test {
 protected:
  TokenizeStageTest() {
    limits_.vocabulary_rows = testing::kTinyVocabularyRows;
    limits_.model_max_tokens = 64;
    limits_.max_input_tokens = 64;
    limits_.max_request_tokens = 100'000;
    Make({});
  }

  void Make(const TokenizeOptions& options) {
    stage_ = std::make_unique<TokenizeStage>(options, metrics_, "tiny", clock_);
  }

  static EncodeRequest RequestOf(std::vector<EncodeInput> inputs) {
    EncodeRequest request;
    request.inputs = std::move(inputs);
    return request;
  }

  Result<TokenizedInputs> Run(EncodeRequest request) {
    return RunCoroutine(stage_->Run(request, source_, limits_));
  }
  Status ErrorOf(EncodeRequest request) { return Run(std::move(request)).status(); }

  testing::TinyTokenizer tokenizer_;
  TextSource source_{tokenizer_.pipeline(), "", false};
  testing::FakeClock clock_;
  Metrics metrics_;
  TokenizeLimits limits_;
  std::unique_ptr<TokenizeStage> stage_;
};

TEST_F(TokenizeStageTest, TurnsTextsAndIdsIntoSequencesInOrder) {
  auto result = Run(RequestOf({"rose ivy", std::vector<int32_t>{9, 8}, "tulip"}));
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_THAT(result->sequences[0].ids, ElementsAre(kTinyCls, kTinyRose, kTinyIvy, kTinySep));
  EXPECT_THAT(result->sequences[1].ids, ElementsAre(9, 8));  // verbatim
  EXPECT_THAT(result->sequences[2].ids, ElementsAre(kTinyCls, kTinyTulip, kTinySep));
}

TEST_F(TokenizeStageTest, PutsThePromptBeforeTextsButNotBeforeIds) {
  EncodeRequest request = RequestOf({"ivy", std::vector<int32_t>{9}});
  request.prompt = "rose ";
  auto result = Run(std::move(request));
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->sequences[0].ids, ElementsAre(kTinyCls, kTinyRose, kTinyIvy, kTinySep));
  EXPECT_THAT(result->sequences[1].ids, ElementsAre(9));
}

TEST_F(TokenizeStageTest, NamesTheFirstEmptyInput) {
  for (const EncodeInput& empty : {EncodeInput(""), EncodeInput(std::vector<int32_t>{})}) {
    const Status status = ErrorOf(RequestOf({"rose", empty, ""}));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "input[1]");
    EXPECT_THAT(status.message(), StartsWith(std::string(kEmptyInputMessage)));
  }
  const Status none = ErrorOf(RequestOf({}));
  EXPECT_EQ(none.field(), "input");
  EXPECT_THAT(none.message(), StartsWith(std::string(kEmptyInputMessage)));
}

TEST_F(TokenizeStageTest, DoesNotCallWhitespaceEmpty) {
  auto result = Run(RequestOf({" \n"}));
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->sequences[0].ids, ElementsAre(kTinyCls, kTinySep));
}

TEST_F(TokenizeStageTest, NamesTheIdThatIsOutOfRange) {
  const Status status = ErrorOf(RequestOf({"rose", std::vector<int32_t>{1, 60}}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "input[1][1]");
  EXPECT_THAT(status.message(), HasSubstr("0..59: 60"));
  EncodeRequest alone = RequestOf({std::vector<int32_t>{-1}});
  alone.field_is_list = false;
  EXPECT_EQ(ErrorOf(std::move(alone)).field(), "input[0]");
}

TEST_F(TokenizeStageTest, RefusesIdsOfTheTokenizerThatTheModelHasNoRowFor) {
  limits_.vocabulary_rows = kTinyRose;
  const Status status = ErrorOf(RequestOf({"rose"}));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.field(), "input[0]");
}

TEST_F(TokenizeStageTest, NamesTheTextThatIsNotUtf8) {
  const Status status = ErrorOf(RequestOf({"rose", "a\xff"}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "input[1]");
}

TEST_F(TokenizeStageTest, SaysWhoseLimitAnInputPasses) {
  limits_.max_input_tokens = 6;
  limits_.model_max_tokens = 8;
  EncodeRequest request = RequestOf({"ivy", "a b c d e"});  // 7 tokens
  Status status = ErrorOf(request);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(status.field(), "input[1]");
  EXPECT_THAT(status.message(), HasSubstr("7 tokens, limit 6 (--max-input-tokens)"));
  status = ErrorOf(RequestOf({"a b c d e f g"}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the model allows: 9 tokens, limit 8"));
  request = RequestOf({std::vector<int32_t>{1, 2, 3, 4}});
  request.max_tokens = 3;
  status = ErrorOf(std::move(request));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the request allows: 4 tokens, limit 3"));
}

TEST_F(TokenizeStageTest, TruncatesTextsAndIdsAtTheSideAskedFor) {
  EncodeRequest request = RequestOf({"a b c d", std::vector<int32_t>{10, 11, 12, 13}});
  request.over_length = text::OverLength::kTruncate;
  request.max_tokens = 3;
  auto right = Run(request);
  ASSERT_TRUE(right.ok()) << right.status().ToString();
  EXPECT_THAT(right->sequences[0].ids, ElementsAre(kTinyCls, 8, kTinySep));
  EXPECT_EQ(right->sequences[0].untruncated_tokens, 6);
  EXPECT_THAT(right->sequences[1].ids, ElementsAre(10, 11, 12));
  EXPECT_TRUE(right->sequences[1].truncated());
  request.truncation_side = text::TruncationSide::kLeft;
  auto left = Run(std::move(request));
  ASSERT_TRUE(left.ok());
  EXPECT_THAT(left->sequences[0].ids, ElementsAre(kTinyCls, 11, kTinySep));
  EXPECT_THAT(left->sequences[1].ids, ElementsAre(11, 12, 13));
}

TEST_F(TokenizeStageTest, LimitsTheTokensOfARequest) {
  limits_.max_request_tokens = 10;
  EXPECT_TRUE(Run(RequestOf({"rose", "ivy", "a b"})).ok());  // 3 + 3 + 4
  const Status status = ErrorOf(RequestOf({"rose", "ivy", "a b c"}));
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("at least 11, limit 10 (--max-tokens-per-request)"));
}

TEST_F(TokenizeStageTest, RefusesTextWithTheReasonWhenTheModelTakesIdsOnly) {
  source_ = {nullptr, "byte-level BPE is not served", false};
  EXPECT_TRUE(Run(RequestOf({std::vector<int32_t>{1, 2}})).ok());
  const Status status = ErrorOf(RequestOf({std::vector<int32_t>{1, 2}, "rose"}));
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.field(), "input[1]");
  EXPECT_THAT(status.message(), HasSubstr("byte-level BPE is not served"));
}

TEST_F(TokenizeStageTest, StopsAtACancelledRequestAndAtItsDeadline) {
  EncodeRequest cancelled = RequestOf({"rose"});
  cancelled.cancelled.request_stop();
  EXPECT_EQ(ErrorOf(std::move(cancelled)).code(), StatusCode::kCancelled);
  EncodeRequest late = RequestOf({"rose"});
  late.deadline = Deadline::After(clock_.Now(), milliseconds(5));
  EXPECT_TRUE(Run(late).ok());
  clock_.Advance(milliseconds(5));
  EXPECT_EQ(ErrorOf(std::move(late)).code(), StatusCode::kDeadlineExceeded);
}

TEST_F(TokenizeStageTest, GivesTheSameIdsInlineAndByWorkers) {
  std::vector<EncodeInput> inputs;
  for (int i = 0; i < 300; ++i) {
    inputs.emplace_back(
        std::string(static_cast<size_t>(i % 60 + 1), static_cast<char>('a' + i % 26)));
  }
  Make({.num_threads = 0});
  auto inline_result = Run(RequestOf(inputs));
  Make({.num_threads = 3, .inline_bytes = 0, .slice_bytes = 200});
  auto worker_result = Run(RequestOf(inputs));
  ASSERT_TRUE(inline_result.ok());
  ASSERT_TRUE(worker_result.ok()) << worker_result.status().ToString();
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(inline_result->sequences[i].ids, worker_result->sequences[i].ids);
  }
}

TEST_F(TokenizeStageTest, ReportsTheFirstErrorByPositionWhicheverWorkerIsFaster) {
  Make({.num_threads = 3, .inline_bytes = 0, .slice_bytes = 1});
  for (int round = 0; round < 30; ++round) {
    std::vector<EncodeInput> inputs(200, EncodeInput("rose"));
    inputs[77] = "\xff";
    inputs[78] = "\xff";
    inputs[199] = "\xff";
    EXPECT_EQ(ErrorOf(RequestOf(std::move(inputs))).field(), "input[77]");
  }
}

TEST_F(TokenizeStageTest, ServesManyRequestsOfBothClassesAtOnce) {
  Make({.num_threads = 2, .inline_bytes = 0, .slice_bytes = 100});
  boost::asio::io_context& context = testing::LastingContext();
  constexpr size_t kRequests = 60;
  std::vector<EncodeRequest> requests(kRequests);
  std::vector<std::optional<Result<TokenizedInputs>>> results(kRequests);
  for (size_t i = 0; i < kRequests; ++i) {
    requests[i].inputs.assign(20, EncodeInput(i % 2 == 0 ? "tulip rose" : "ivy"));
    requests[i].traffic_class =
        i % 3 == 0 ? model::TrafficClass::kInteractive : model::TrafficClass::kBulk;
    testing::StartCoroutine(context, stage_->Run(requests[i], source_, limits_), results[i]);
  }
  context.run();
  for (size_t i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(results[i]->ok());
    EXPECT_EQ((*results[i])->sequences[19].ids[1], i % 2 == 0 ? kTinyTulip : kTinyIvy);
  }
}

TEST_F(TokenizeStageTest, SaysFullWhenTooManyRequestsWait) {
  Make({.num_threads = 1, .inline_bytes = 0, .slice_bytes = 1 << 20, .max_waiting_requests = 1});
  boost::asio::io_context& context = testing::LastingContext();
  constexpr size_t kRequests = 20;
  std::vector<EncodeRequest> requests(kRequests);
  std::vector<std::optional<Result<TokenizedInputs>>> results(kRequests);
  for (size_t i = 0; i < kRequests; ++i) {
    requests[i].inputs.assign(2000, EncodeInput("tulip rose ivy"));
    testing::StartCoroutine(context, stage_->Run(requests[i], source_, limits_), results[i]);
  }
  context.run();
  int full = 0;
  for (const auto& result : results) {
    if (!result->ok()) {
      EXPECT_EQ(result->code(), StatusCode::kResourceExhausted);
      EXPECT_GE(result->status().retry_after_seconds(), 1);
      ++full;
    }
  }
  EXPECT_GT(full, 0);
  EXPECT_LT(full, 20);
}

}  // namespace
}  // namespace bouquet::ivy
