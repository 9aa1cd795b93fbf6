#include "tulip/core.h"

#include <charconv>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/chunks.h"
#include "testing/fake_clock.h"
#include "testing/fake_step_engine.h"
#include "testing/waiting_reply.h"

namespace bouquet::tulip {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAreArray;
using testing::FakeClock;
using testing::FakeRow;
using testing::FakeStepEngine;
using testing::FakeStepEngineOptions;
using ::testing::HasSubstr;
using testing::MakeChunk;
using testing::RowAt;
using testing::WaitingReply;

/// A core over a fake engine and a clock that stands still; steps of up to 100 tokens.
class CoreTest : public ::testing::Test {
 protected:
  void Start(const FakeStepEngineOptions& engine_options = {}, CoreOptions options = {}) {
    auto engine = std::make_unique<FakeStepEngine>(engine_options);
    engine_ = engine.get();
    options.model_name = "fake";
    options.max_batch_sequences = 64;
    options.warm_up.budget = milliseconds(0);  // one step, of ids that no test uses
    options.step_tokens = options.step_tokens == 0 ? 100 : options.step_tokens;
    auto core =
        Core::Start(std::unique_ptr<StepEngine>(std::move(engine)), options, metrics_, clock_);
    ASSERT_TRUE(core.ok()) << core.status().ToString();
    core_ = std::move(core).value();
    warm_up_steps_ = engine_->num_steps();
  }

  std::shared_ptr<WaitingReply> NewReply(std::stop_token cancelled = {}) {
    return std::make_shared<WaitingReply>(std::move(cancelled));
  }

  // Submits one sequence and leaves it in a step that does not end before Release.
  std::shared_ptr<WaitingReply> OccupyEngine() {
    engine_->Hold();
    auto reply = NewReply();
    EXPECT_TRUE(core_->Submit(MakeChunk({{999}}), reply).ok());
    while (core_->Load().under_way_tokens == 0) {
      std::this_thread::yield();
    }
    return reply;
  }

  Status SubmitOne(Sequence sequence) {
    std::vector<Sequence> sequences;
    sequences.push_back(std::move(sequence));
    return core_->Submit(std::move(sequences), NewReply());
  }

  double Value(const std::string& series) const {
    const std::string text = metrics_.Render();
    const size_t at = text.find(series + " ");
    EXPECT_NE(at, std::string::npos) << series << " in\n" << text;
    double value = -1;
    if (at != std::string::npos) {
      const char* begin = text.data() + at + series.size() + 1;
      std::from_chars(begin, text.data() + text.size(), value);
    }
    return value;
  }

  FakeClock clock_;
  Metrics metrics_;
  FakeStepEngine* engine_ = nullptr;
  std::unique_ptr<Core> core_;
  int64_t warm_up_steps_ = 0;
};

TEST_F(CoreTest, AnswersEachSequenceWithItsOwnRow) {
  Start();
  auto reply = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{1, 2, 3}, {4}, {3, 2, 1}}), reply).ok());
  reply->Wait();
  EXPECT_EQ(reply->dimensions(), 8U);
  EXPECT_THAT(RowAt(*reply, 0), ElementsAreArray(FakeRow(std::vector{1, 2, 3}, 8)));
  EXPECT_THAT(RowAt(*reply, 1), ElementsAreArray(FakeRow(std::vector{4}, 8)));
  EXPECT_THAT(RowAt(*reply, 2), ElementsAreArray(FakeRow(std::vector{3, 2, 1}, 8)));
  for (const ChunkReply::Outcome& outcome : reply->outcomes()) {
    EXPECT_TRUE(outcome.status.ok());
  }
}

TEST_F(CoreTest, CutsRowsToTheDimensionsAskedFor) {
  Start();
  auto reply = NewReply();
  std::vector<Sequence> chunk = MakeChunk({{1}, {2}});
  chunk[0].output.dimensions = 3;
  chunk[1].output.dimensions = 3;
  ASSERT_TRUE(core_->Submit(std::move(chunk), reply).ok());
  reply->Wait();
  EXPECT_EQ(reply->rows().size(), 6U);
  EXPECT_THAT(RowAt(*reply, 1), ElementsAreArray(FakeRow(std::vector{2}, 3)));
}

TEST_F(CoreTest, ComputesWhatArrivesDuringAStepTogetherInTheNext) {
  Start();
  auto first = OccupyEngine();
  std::vector<std::shared_ptr<WaitingReply>> replies;
  for (int32_t id = 1; id <= 5; ++id) {
    replies.push_back(NewReply());
    ASSERT_TRUE(core_->Submit(MakeChunk({{id, id}}), replies.back()).ok());
  }
  EXPECT_EQ(core_->Load().queued_tokens, 10);
  EXPECT_EQ(core_->Load().under_way_tokens, 1);
  EXPECT_FALSE(replies[0]->started());
  engine_->Release();
  for (auto& reply : replies) {
    reply->Wait();
    EXPECT_TRUE(reply->started());
  }
  EXPECT_EQ(engine_->num_steps(), warm_up_steps_ + 2);
  EXPECT_EQ(core_->Load().queued_tokens, 0);
}

TEST_F(CoreTest, ReportsHowLongASequenceWaitedAndRan) {
  Start();
  auto first = OccupyEngine();
  auto second = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}}), second).ok());
  clock_.Advance(milliseconds(30));
  engine_->Release();
  second->Wait();
  EXPECT_EQ(first->outcomes()[0].step, milliseconds(30));
  EXPECT_EQ(second->outcomes()[0].queue, milliseconds(30));
}

TEST_F(CoreTest, RefusesWhatTheEngineMustNotSee) {
  Start({}, {.model_max_tokens = 64, .max_input_tokens = 32});
  EXPECT_EQ(core_->Submit({}, NewReply()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SubmitOne({}).code(), StatusCode::kInvalidArgument);
  Sequence sequence;
  sequence.ids = {5, -1};
  EXPECT_THAT(SubmitOne(sequence).message(), HasSubstr("token ids must be 0..999: -1"));
  sequence.ids = {1000, 5};
  EXPECT_EQ(SubmitOne(sequence).field(), "sequences[0]");
  sequence.ids = {1};
  sequence.type_ids = {2};
  EXPECT_EQ(SubmitOne(sequence).code(), StatusCode::kInvalidArgument);
  sequence.type_ids = {0, 0};
  EXPECT_EQ(SubmitOne(sequence).code(), StatusCode::kInvalidArgument);
  sequence.type_ids = {};
  sequence.pooling_start = 1;
  EXPECT_EQ(SubmitOne(sequence).code(), StatusCode::kInvalidArgument);
  sequence.pooling_start = 0;
  sequence.output.dimensions = 9;
  EXPECT_THAT(SubmitOne(sequence).message(), HasSubstr("dimensions must be 1..8: 9"));
  std::vector<Sequence> mixed = MakeChunk({{1}, {2}});
  mixed[1].output.normalize = false;
  EXPECT_EQ(core_->Submit(std::move(mixed), NewReply()).field(), "sequences[1]");
  EXPECT_EQ(engine_->num_steps(), warm_up_steps_);
  EXPECT_EQ(Value("bouquet_rejected_chunks_total{model=\"fake\",reason=\"invalid\"}"), 9);
}

TEST_F(CoreTest, TellsTheModelsLimitFromTheOperators) {
  Start({}, {.model_max_tokens = 64, .max_input_tokens = 32});
  Sequence sequence;
  sequence.ids.assign(33, 1);
  const Status lowered = SubmitOne(sequence);
  EXPECT_EQ(lowered.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(lowered.message(), HasSubstr("33 tokens, limit 32 (--max-input-tokens)"));
  sequence.ids.assign(65, 1);
  const Status models = SubmitOne(sequence);
  EXPECT_EQ(models.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(models.message(), HasSubstr("65 tokens, limit 64"));
}

TEST_F(CoreTest, RunsAnInputLongerThanTheStepTarget) {
  Start();
  auto reply = NewReply();
  const std::vector<int32_t> ids(500, 7);
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}, ids, {2}}), reply).ok());
  reply->Wait();
  EXPECT_THAT(RowAt(*reply, 1), ElementsAreArray(FakeRow(ids, 8)));
  EXPECT_EQ(engine_->num_steps(), warm_up_steps_ + 3);
}

TEST_F(CoreTest, SaysFullAtOnceAndNeverTouchesTheReply) {
  Start({}, {.max_queue = milliseconds(1)});
  auto first = OccupyEngine();
  std::vector<std::shared_ptr<WaitingReply>> accepted;
  Status status;
  for (int i = 0; i < 10'000 && status.ok(); ++i) {  // a fake engine on a still clock is very fast
    auto reply = NewReply();
    status = core_->Submit(MakeChunk(std::vector(64, std::vector<int32_t>(500, 1))), reply);
    if (status.ok()) {
      accepted.push_back(reply);
    } else {
      EXPECT_EQ(reply->completions(), 0);
    }
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_GE(status.retry_after_seconds(), 1);
  EXPECT_EQ(Value("bouquet_rejected_chunks_total{model=\"fake\",reason=\"full\"}"), 1);
  const double queued = Value("bouquet_queue_tokens{model=\"fake\"}");
  EXPECT_EQ(queued, static_cast<double>(accepted.size()) * 64 * 500);
  engine_->Release();
  for (auto& reply : accepted) {
    reply->Wait();
  }
  EXPECT_EQ(Value("bouquet_queue_tokens{model=\"fake\"}"), 0);
  EXPECT_EQ(Value("bouquet_queue_sequences{model=\"fake\"}"), 0);
}

TEST_F(CoreTest, NeverComputesWhatExpiredInTheQueue) {
  Start();
  auto first = OccupyEngine();
  auto late = NewReply();
  std::vector<Sequence> chunk = MakeChunk({{5, 6}});
  chunk[0].deadline = Deadline::After(clock_.Now(), milliseconds(10));
  ASSERT_TRUE(core_->Submit(std::move(chunk), late).ok());
  clock_.Advance(milliseconds(10));
  engine_->Release();
  late->Wait();
  EXPECT_EQ(late->outcomes()[0].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late->outcomes()[0].status.message(), HasSubstr("in the queue"));
  EXPECT_FALSE(engine_->HasComputed(5));
  EXPECT_EQ(Value("bouquet_expired_sequences_total{model=\"fake\",stage=\"queue\"}"), 1);
  EXPECT_EQ(Value("bouquet_spared_tokens_total{model=\"fake\"}"), 2);
}

TEST_F(CoreTest, NeverComputesWhatWasCancelledInTheQueue) {
  Start();
  auto first = OccupyEngine();
  std::stop_source source;
  auto gone = NewReply(source.get_token());
  auto stays = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{5}, {6}}), gone).ok());
  ASSERT_TRUE(core_->Submit(MakeChunk({{7}}), stays).ok());
  source.request_stop();
  engine_->Release();
  gone->Wait();
  stays->Wait();
  EXPECT_EQ(gone->outcomes()[1].status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(stays->outcomes()[0].status.ok());
  EXPECT_FALSE(engine_->HasComputed(5));
  EXPECT_EQ(Value("bouquet_cancelled_sequences_total{model=\"fake\",stage=\"queue\"}"), 2);
}

TEST_F(CoreTest, DropsTheRowsOfAChunkThatEndedWhileItWasComputed) {
  Start();
  engine_->Hold();
  std::stop_source source;
  auto cancelled = NewReply(source.get_token());
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}}), cancelled).ok());
  engine_->WaitForSteps(warm_up_steps_ + 1);
  source.request_stop();
  engine_->Release();
  cancelled->Wait();
  EXPECT_EQ(cancelled->outcomes()[0].status.code(), StatusCode::kCancelled);

  engine_->Hold();
  auto late = NewReply();
  std::vector<Sequence> chunk = MakeChunk({{2}});
  chunk[0].deadline = Deadline::After(clock_.Now(), milliseconds(10));
  ASSERT_TRUE(core_->Submit(std::move(chunk), late).ok());
  engine_->WaitForSteps(warm_up_steps_ + 2);
  clock_.Advance(milliseconds(10));
  engine_->Release();
  late->Wait();
  EXPECT_THAT(late->outcomes()[0].status.message(), HasSubstr("in the engine"));
}

TEST_F(CoreTest, RefusesADeadlineThatHasPassed) {
  Start();
  Sequence sequence;
  sequence.ids = {1};
  sequence.deadline = {clock_.Now()};
  EXPECT_EQ(SubmitOne(sequence).code(), StatusCode::kDeadlineExceeded);
}

TEST_F(CoreTest, FailsOnlyTheSequenceWhoseRowIsNotFinite) {
  Start({.not_finite_id = 13});
  auto reply = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}, {2, 13}, {3}}), reply).ok());
  reply->Wait();
  EXPECT_TRUE(reply->outcomes()[0].status.ok());
  EXPECT_EQ(reply->outcomes()[1].status.code(), StatusCode::kInternal);
  EXPECT_TRUE(reply->outcomes()[2].status.ok());
  EXPECT_EQ(RowAt(*reply, 1), std::vector<float>(8, 0));
}

TEST_F(CoreTest, ARowThatIsNotFiniteFailsNoneOfThoseBesideIt) {
  Start({.not_finite_id = 13, .not_finite_spreads = true});
  auto first = OccupyEngine();
  std::vector<std::shared_ptr<WaitingReply>> replies;
  for (int32_t id = 0; id < 20; ++id) {
    replies.push_back(NewReply());
    const std::vector<int32_t> ids = {id, id == 4 ? 13 : 7};  // two of twenty
    ASSERT_TRUE(core_->Submit(MakeChunk({ids}), replies.back()).ok());
  }
  engine_->Release();
  for (int32_t id = 0; id < 20; ++id) {
    WaitingReply& reply = *replies[static_cast<size_t>(id)];
    reply.Wait();
    EXPECT_EQ(reply.completions(), 1);
    if (id == 4 || id == 13) {
      EXPECT_EQ(reply.outcomes()[0].status.code(), StatusCode::kInternal);
      EXPECT_THAT(reply.outcomes()[0].status.message(), HasSubstr("is not finite"));
    } else {
      EXPECT_THAT(RowAt(reply, 0), ElementsAreArray(FakeRow(std::vector{id, 7}, 8)));
    }
  }
  core_->Stop(milliseconds(1000));
  EXPECT_EQ(Value("bouquet_failed_steps_total{model=\"fake\"}"), 0);
}

TEST_F(CoreTest, IsolatesThePoisonInAStepThatFailsAsAWhole) {
  Start({.poison_id = 13});
  auto first = OccupyEngine();
  std::vector<std::shared_ptr<WaitingReply>> replies;
  for (int32_t id = 0; id < 20; ++id) {
    replies.push_back(NewReply());
    ASSERT_TRUE(core_->Submit(MakeChunk({{id}}), replies.back()).ok());
  }
  engine_->Release();
  for (int32_t id = 0; id < 20; ++id) {
    WaitingReply& reply = *replies[static_cast<size_t>(id)];
    reply.Wait();
    if (id == 13) {
      EXPECT_EQ(reply.outcomes()[0].status.code(), StatusCode::kInternal);
      EXPECT_THAT(reply.outcomes()[0].status.message(), HasSubstr("a poisoned sequence"));
    } else {
      EXPECT_THAT(RowAt(reply, 0), ElementsAreArray(FakeRow(std::vector{id}, 8)));
    }
  }
  auto after = NewReply();  // and the loop goes on
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}}), after).ok());
  after->Wait();
  EXPECT_TRUE(after->outcomes()[0].status.ok());
}

TEST_F(CoreTest, SplitsAStepThatRunsOutOfMemory) {
  Start({.max_positions = 128, .largest_step_allowed = 32});
  auto first = OccupyEngine();
  auto reply = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk(std::vector(60, std::vector<int32_t>{1})), reply).ok());
  engine_->Release();
  reply->Wait();
  for (const ChunkReply::Outcome& outcome : reply->outcomes()) {
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  }
}

TEST_F(CoreTest, CallsAFailureOfTheEngineInternalWhateverItsCode) {
  // "Out of memory" of one sequence must not look like a full queue, which asks for another try.
  Start({.poison_id = 13, .poison_error = StatusCode::kResourceExhausted});
  auto reply = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{13}, {1}}), reply).ok());
  reply->Wait();
  EXPECT_EQ(reply->outcomes()[0].status.code(), StatusCode::kInternal);
  EXPECT_TRUE(reply->outcomes()[1].status.ok());
}

TEST_F(CoreTest, FinishesWhatItAcceptedWhenStopped) {
  Start();
  auto first = OccupyEngine();
  auto second = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}, {2}}), second).ok());
  std::thread stop([&] { core_->Stop(milliseconds(60'000)); });
  while (core_->Load().accepting) {
    std::this_thread::yield();
  }
  EXPECT_EQ(core_->Submit(MakeChunk({{3}}), NewReply()).code(), StatusCode::kUnavailable);
  engine_->Release();
  stop.join();
  EXPECT_EQ(first->completions(), 1);
  EXPECT_EQ(second->completions(), 1);
  EXPECT_TRUE(second->outcomes()[1].status.ok());
}

TEST_F(CoreTest, AnswersWhatItCannotFinishWithinTheDrainTime) {
  Start();
  auto first = OccupyEngine();
  auto second = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}, {2}}), second).ok());
  std::thread stop([&] { core_->Stop(milliseconds(0)); });
  while (core_->Load().accepting) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(milliseconds(20));  // lets Stop give up; either order must hold
  engine_->Release();
  stop.join();
  EXPECT_EQ(first->completions(), 1);
  EXPECT_TRUE(first->outcomes()[0].status.ok());  // its step was under way
  EXPECT_EQ(second->completions(), 1);
  for (const ChunkReply::Outcome& outcome : second->outcomes()) {
    EXPECT_EQ(outcome.status.code(), StatusCode::kUnavailable);
  }
}

TEST_F(CoreTest, RefusesOptionsThatTheEngineCannotServe) {
  const auto code = [&](const CoreOptions& options) {
    return Core::Start(std::make_unique<FakeStepEngine>(), options, metrics_, clock_).code();
  };
  EXPECT_EQ(code({.step_tokens = 1025, .max_batch_sequences = 64}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.max_batch_sequences = 65}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.max_input_tokens = 513, .max_batch_sequences = 64}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.max_batch_sequences = 64, .max_queue = milliseconds(0)}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.max_batch_sequences = 64}), StatusCode::kOk);
}

TEST_F(CoreTest, ShowsEverySeriesBeforeTraffic) {
  Start();
  for (const char* series :
       {"bouquet_queue_tokens{model=\"fake\"}", "bouquet_queue_sequences{model=\"fake\"}",
        "bouquet_step_tokens_count{model=\"fake\"}", "bouquet_step_sequences_count{model=\"fake\"}",
        "bouquet_step_fill_ratio_count{model=\"fake\"}",
        "bouquet_queue_seconds_count{model=\"fake\"}", "bouquet_step_seconds_count{model=\"fake\"}",
        "bouquet_steps_total{how=\"replay\",model=\"fake\"}",
        "bouquet_padding_tokens_total{model=\"fake\"}",
        "bouquet_rejected_chunks_total{model=\"fake\",reason=\"full\"}",
        "bouquet_answered_sequences_total{model=\"fake\",outcome=\"ok\"}",
        "bouquet_cancelled_sequences_total{model=\"fake\",stage=\"queue\"}"}) {
    EXPECT_EQ(Value(series), 0) << series;
  }
}

TEST_F(CoreTest, CountsEachSequenceAndStepOnce) {
  Start({.not_finite_id = 13});
  auto reply = NewReply();
  ASSERT_TRUE(core_->Submit(MakeChunk({{1}, {2, 13}, {3}}), reply).ok());
  reply->Wait();
  core_->Stop(milliseconds(1000));
  EXPECT_EQ(Value("bouquet_answered_sequences_total{model=\"fake\",outcome=\"ok\"}"), 2);
  EXPECT_EQ(Value("bouquet_answered_sequences_total{model=\"fake\",outcome=\"not_finite\"}"), 1);
  EXPECT_EQ(Value("bouquet_queue_seconds_count{model=\"fake\"}"), 3);
  EXPECT_EQ(Value("bouquet_step_seconds_count{model=\"fake\"}"), 1);
  EXPECT_EQ(Value("bouquet_step_tokens_sum{model=\"fake\"}"), 4);
}

TEST_F(CoreTest, CountsStepsByHowTheyWereLaunchedAndWhatTheirPaddingCost) {
  // The warm-up step was captured; then a replay, a capture for which another graph had to go, two
  // eager steps and a replay.
  Start({.padded_to = 64,
         .graph_use = {{.captures = 1},
                       {.replays = 1, .captures = 1},
                       {.replays = 1, .captures = 2, .evictions = 1},
                       {.replays = 1, .captures = 2, .evictions = 1},
                       {.replays = 1, .captures = 2, .evictions = 1},
                       {.replays = 2, .captures = 2, .evictions = 1}}});
  ASSERT_EQ(warm_up_steps_, 1);
  for (int32_t step = 0; step < 5; ++step) {
    auto reply = NewReply();
    ASSERT_TRUE(core_->Submit(MakeChunk({{1, 2}, {3}}), reply).ok());
    reply->Wait();
  }
  core_->Stop(milliseconds(1000));
  EXPECT_EQ(Value("bouquet_steps_total{how=\"replay\",model=\"fake\"}"), 2);
  EXPECT_EQ(Value("bouquet_steps_total{how=\"capture\",model=\"fake\"}"), 1);
  EXPECT_EQ(Value("bouquet_steps_total{how=\"eager\",model=\"fake\"}"), 2);
  EXPECT_EQ(Value("bouquet_evicted_graphs_total{model=\"fake\"}"), 1);
  EXPECT_EQ(Value("bouquet_padding_tokens_total{model=\"fake\"}"), 5 * (64 - 3));
}

}  // namespace
}  // namespace bouquet::tulip
