#include "ivy/encode/encoder.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "testing/fake_replica.h"
#include "testing/run_coroutine.h"
#include "testing/tiny_tokenizer.h"

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeReplica;
using testing::FakeRow;
using ::testing::Le;
using testing::RunCoroutine;

/// The encoder over a real tokenizer of a tiny vocabulary and a fake replica with steps of 32
/// tokens.
class EncoderTest : public ::testing::Test {
 protected:
  EncoderTest() {
    stage_ = std::make_unique<TokenizeStage>(TokenizeOptions{.num_threads = 1}, metrics_, "tiny",
                                             clock_);
    auto replica = std::make_unique<FakeReplica>();
    replica_ = replica.get();
    std::vector<std::unique_ptr<Replica>> replicas;
    replicas.push_back(std::move(replica));
    pool_ = std::move(ReplicaPool::Create(std::move(replicas), "tiny", metrics_).value());
    encoder_ = Encoder::Create({}, {tokenizer_.pipeline(), "", false}, *stage_, *pool_).value();
  }

  static EncodeRequest RequestOf(std::vector<EncodeInput> inputs) {
    EncodeRequest request;
    request.inputs = std::move(inputs);
    return request;
  }
  // `count` inputs of eight ids each, the first of which is its index + 100.
  static EncodeRequest LongRequest(int count) {
    EncodeRequest request;
    for (int i = 0; i < count; ++i) {
      request.inputs.emplace_back(std::vector<int32_t>{i + 100, 1, 2, 3, 4, 5, 6, 7});
    }
    return request;
  }

  Result<EncodedRows> Encode(EncodeRequest request) {
    return RunCoroutine(encoder_->Encode(std::move(request)));
  }

  // Starts a request, waits until the replica has `chunks` of it, does `then`, and returns the
  // answer.
  template <class Then>
  Result<EncodedRows> EncodeAnd(EncodeRequest request, int chunks, Then then) {
    boost::asio::io_context& context = testing::LastingContext();
    std::optional<Result<EncodedRows>> result;
    testing::StartCoroutine(context, encoder_->Encode(std::move(request)), result);
    while (replica_->num_chunks() < chunks) {
      context.run_one();
    }
    then();
    context.run();
    return std::move(result).value();
  }

  static std::vector<float> RowAt(const EncodedRows& rows, size_t index) {
    const auto begin = rows.values.begin() + static_cast<ptrdiff_t>(index * rows.dimensions);
    return {begin, begin + rows.dimensions};
  }

  testing::TinyTokenizer tokenizer_;
  SystemClock clock_;
  Metrics metrics_;
  std::unique_ptr<TokenizeStage> stage_;
  FakeReplica* replica_ = nullptr;
  std::unique_ptr<ReplicaPool> pool_;
  std::shared_ptr<Encoder> encoder_;
};

TEST_F(EncoderTest, RefusesALimitThatTheReplicasDoNotAdmit) {
  const int32_t admitted = pool_->Describe().max_input_tokens;
  EXPECT_TRUE(Encoder::Create({.max_input_tokens = admitted}, {}, *stage_, *pool_).ok());
  const auto refused = Encoder::Create({.max_input_tokens = admitted + 1}, {}, *stage_, *pool_);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.status().field(), "max-input-tokens");
}

TEST_F(EncoderTest, AnswersTextsAndIdsInInputOrder) {
  auto rows = Encode(RequestOf({"rose ivy", std::vector<int32_t>{9, 8}}));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->dimensions, 8U);
  EXPECT_EQ(RowAt(*rows, 0), FakeRow(std::vector{testing::kTinyCls, testing::kTinyRose,
                                                 testing::kTinyIvy, testing::kTinySep},
                                     8));
  EXPECT_EQ(RowAt(*rows, 1), FakeRow(std::vector{9, 8}, 8));
  EXPECT_THAT(rows->token_counts, ElementsAre(4, 2));
  EXPECT_EQ(rows->total_tokens(), 6);
  EXPECT_THAT(rows->truncated, ElementsAre(0, 0));
  EXPECT_EQ(rows->timings.queue_us, 10);
  EXPECT_EQ(rows->timings.step_us, 100);
  EXPECT_EQ(replica_->num_chunks(), 1);
}

TEST_F(EncoderTest, SendsALongRequestInChunksOfAStepAndKeepsTheOrder) {
  auto rows = Encode(LongRequest(101));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(replica_->chunk_sizes(), Each(Le(4U)));  // 32 tokens
  EXPECT_EQ(replica_->num_chunks(), 26);
  for (int i = 0; i < 101; ++i) {
    ASSERT_EQ(RowAt(*rows, static_cast<size_t>(i)),
              FakeRow(std::vector{i + 100, 1, 2, 3, 4, 5, 6, 7}, 8));
  }
}

TEST_F(EncoderTest, KeepsTwoChunksPerReplicaUnderWay) {
  replica_->Hold();
  auto rows = EncodeAnd(LongRequest(40), 2, [&] {
    EXPECT_EQ(replica_->num_chunks(), 2);
    replica_->Release();
  });
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(replica_->largest_under_way(), 2);
}

TEST_F(EncoderTest, ReadsTextsIntoTokensAndTokensIntoTexts) {
  TextRequest request;
  request.inputs = {"rose", std::vector{testing::kTinyCls, testing::kTinyIvy}, ""};
  request.prompt = "ivy ";
  const auto answers = RunCoroutine(encoder_->ReadTexts(std::move(request)));
  ASSERT_TRUE(answers.ok()) << answers.status().ToString();
  const TextAnswer& tokens = answers->at(0);
  EXPECT_EQ(tokens.text, "ivy rose");
  EXPECT_THAT(tokens.tokens.ids, ElementsAre(testing::kTinyCls, testing::kTinyIvy,
                                             testing::kTinyRose, testing::kTinySep));
  EXPECT_EQ(tokens.tokens.spans[2], (text::ByteSpan{4, 8}));
  EXPECT_THAT(tokens.tokens.special_mask, ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(tokens.pieces, ElementsAre("[CLS]", "ivy", "rose", "[SEP]"));
  EXPECT_EQ(answers->at(1).text, "ivy");
  EXPECT_EQ(answers->at(2).text, "ivy ");
}

TEST_F(EncoderTest, SaysWhatOfATextRequestIsWrong) {
  const auto status_of = [this](std::vector<EncodeInput> inputs, bool count_only = false) {
    TextRequest request;
    request.inputs = std::move(inputs);
    request.count_only = count_only;
    const auto limited = Encoder::Create({.max_tokens_per_request = 6},
                                         {tokenizer_.pipeline(), "", false}, *stage_, *pool_);
    return RunCoroutine(limited.value()->ReadTexts(std::move(request))).status();
  };
  const Status bad_id = status_of({std::vector{1}, std::vector{2, -1}});
  EXPECT_EQ(bad_id.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(bad_id.field(), "inputs[1][1]");
  EXPECT_EQ(status_of({"rose", "\xFF"}).field(), "inputs[1]");
  EXPECT_EQ(status_of({"rose rose", "ivy ivy"}).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(status_of({"rose rose", "ivy ivy"}, /*count_only=*/true).ok());

  const auto ids_only = Encoder::Create({}, {nullptr, "no files", false}, *stage_, *pool_);
  const auto refused = RunCoroutine(ids_only.value()->ReadTexts({}));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("no files"));
}

TEST_F(EncoderTest, RefusesDimensionsBeyondTheModels) {
  EncodeRequest request = RequestOf({"rose"});
  request.output.dimensions = 9;
  const Status status = Encode(std::move(request)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "dimensions");
}

TEST_F(EncoderTest, RefusesRowFormatsThatItDoesNotAnswer) {
  EncodeRequest request = RequestOf({"rose"});
  request.output.dtype = model::RowDtype::kSignBitsMsbFirst;
  const Status status = Encode(std::move(request)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.field(), "output_dtype");
}

TEST_F(EncoderTest, CutsRowsToTheDimensionsAskedFor) {
  EncodeRequest request = RequestOf({"rose"});
  request.output.dimensions = 2;
  auto rows = Encode(std::move(request));
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->dimensions, 2U);
  EXPECT_EQ(rows->values.size(), 2U);
}

TEST_F(EncoderTest, SendsNothingWhenAnInputIsBad) {
  EXPECT_EQ(Encode(RequestOf({"rose", ""})).status().field(), "input[1]");
  EXPECT_EQ(replica_->num_chunks(), 0);
}

TEST_F(EncoderTest, KeepsAnInputThatFailsAloneApart) {
  replica_->FailSequencesOf(102, Internal("not finite"));
  auto rows = Encode(LongRequest(20));
  ASSERT_TRUE(rows.ok());
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(rows->statuses[i].ok(), i != 2);
  }
}

TEST_F(EncoderTest, RefusesARequestThatFindsTheQueueFull) {
  replica_->RefuseWith([](int) { return ResourceExhausted("full").WithRetryAfter(3); });
  for (const int inputs : {1, 40}) {
    const Status status = Encode(LongRequest(inputs)).status();
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(status.retry_after_seconds(), 3);
  }
}

TEST_F(EncoderTest, WaitsForRoomOnceARequestHasBegun) {
  // Every third chunk finds the queue full.
  replica_->RefuseWith([](int number) {
    return number > 0 && number % 3 == 0 ? ResourceExhausted("full") : Status();
  });
  auto rows = Encode(LongRequest(40));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_GT(replica_->num_chunks(), 10);
  EXPECT_EQ(RowAt(*rows, 39), FakeRow(std::vector{139, 1, 2, 3, 4, 5, 6, 7}, 8));
}

TEST_F(EncoderTest, WaitsForRoomNoLongerThanTheDeadline) {
  replica_->RefuseWith(
      [](int number) { return number > 0 ? ResourceExhausted("full") : Status(); });
  EncodeRequest request = LongRequest(40);
  request.deadline = Deadline::After(clock_.Now(), milliseconds(30));
  EXPECT_EQ(Encode(std::move(request)).code(), StatusCode::kDeadlineExceeded);
}

TEST_F(EncoderTest, CancelsTheOtherChunksWhenOneFails) {
  replica_->Hold();
  replica_->RefuseWith([](int number) { return number == 1 ? Unavailable("lost") : Status(); });
  EncodeRequest request = LongRequest(40);
  const std::stop_source source = request.cancelled;
  const Status status = Encode(std::move(request)).status();  // the first chunk is held for ever
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(source.stop_requested());
  EXPECT_EQ(replica_->num_chunks(), 2);  // and no further one was sent
}

TEST_F(EncoderTest, EndsARequestWhoseClientHangsUp) {
  replica_->Hold();
  EncodeRequest request = LongRequest(40);
  const std::stop_source source = request.cancelled;
  auto rows = EncodeAnd(std::move(request), 2, [&] {
    source.request_stop();
    replica_->Release();
  });
  EXPECT_EQ(rows.code(), StatusCode::kCancelled);
  EXPECT_LE(replica_->num_chunks(), 3);
}

TEST_F(EncoderTest, SendsRequestIdAndTraceAlong) {
  EncodeRequest request = RequestOf({"rose"});
  request.request_id = "abc";
  request.trace = {"parent", "state"};
  EXPECT_TRUE(Encode(std::move(request)).ok());
  EXPECT_EQ(replica_->last_request_id(), "abc");
  EXPECT_EQ(replica_->last_trace().parent, "parent");
  EXPECT_EQ(replica_->last_trace().state, "state");
}

TEST_F(EncoderTest, ServesTheNextRequestAfterEachError) {
  EXPECT_FALSE(Encode(RequestOf({""})).ok());
  replica_->RefuseWith([](int number) { return number == 0 ? Unavailable("lost") : Status(); });
  EXPECT_FALSE(Encode(RequestOf({"rose"})).ok());
  EXPECT_TRUE(Encode(RequestOf({"rose"})).ok());
}

TEST_F(EncoderTest, AllowsARequestThatNobodyCanCancel) {
  EncodeRequest request = LongRequest(40);
  request.cancelled = std::stop_source(std::nostopstate);
  EXPECT_TRUE(Encode(std::move(request)).ok());
}

}  // namespace
}  // namespace bouquet::ivy
