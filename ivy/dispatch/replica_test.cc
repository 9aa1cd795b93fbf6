// What Ivy may rely on, whatever kind of replica it has: one suite over both kinds.
#include "ivy/dispatch/replica.h"

#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "ivy/dispatch/grpc_replica.h"
#include "ivy/dispatch/in_process_replica.h"
#include "testing/eventually.h"
#include "testing/fake_step_engine.h"
#include "testing/run_coroutine.h"
#include "tulip/core.h"
#include "tulip/server.h"

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAreArray;
using testing::Eventually;
using testing::FakeRow;
using testing::FakeStepEngine;
using testing::FakeStepEngineOptions;
using ::testing::HasSubstr;
using testing::RunCoroutine;

enum class Kind { kInProcess, kGrpc };

class ReplicaTest : public ::testing::TestWithParam<Kind> {
 protected:
  void Start(const FakeStepEngineOptions& engine_options = {}) {
    auto engine = std::make_unique<FakeStepEngine>(engine_options);
    engine_ = engine.get();
    auto core = tulip::Core::Start(std::unique_ptr<tulip::StepEngine>(std::move(engine)),
                                   {.model_name = "fake",
                                    .identity = "identity-1",
                                    .step_tokens = 100,
                                    .max_batch_sequences = 64,
                                    .max_queue = milliseconds(200),
                                    .warm_up = {.budget = milliseconds(0)}},
                                   metrics_, clock_);
    ASSERT_TRUE(core.ok()) << core.status().ToString();
    core_ = std::move(core).value();
    if (GetParam() == Kind::kInProcess) {
      replica_ = std::make_unique<InProcessReplica>(*core_);
      return;
    }
    auto server = tulip::Server::Start({.listen = {"127.0.0.1:0"}, .model_name = "fake"}, clock_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    server_->SetReady(*core_);
    replica_ = std::make_unique<GrpcReplica>(
        GrpcReplicaOptions{.address = "127.0.0.1:" + std::to_string(server_->ports().front()),
                           .probe = {.interval = milliseconds(20)}},
        [](const ReplicaDescription&) { return Status(); }, metrics_, clock_);
    ASSERT_TRUE(Eventually([&] { return replica_->Load().ready; }));
  }

  static Chunk MakeChunk(const std::vector<std::vector<int32_t>>& ids) {
    Chunk chunk;
    for (const std::vector<int32_t>& sequence_ids : ids) {
      chunk.sequences.push_back({.ids = sequence_ids});
    }
    return chunk;
  }

  /// The caller is told at once; a server hears of a deadline or a cancellation a moment later,
  /// here while the engine is held.
  static void LetTheServerHearOfIt() {
    if (GetParam() == Kind::kGrpc) {
      std::this_thread::sleep_for(milliseconds(300));
    }
  }

  SystemClock clock_;
  Metrics metrics_;
  FakeStepEngine* engine_ = nullptr;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<tulip::Server> server_;
  std::unique_ptr<Replica> replica_;
};

INSTANTIATE_TEST_SUITE_P(EachKind, ReplicaTest, ::testing::Values(Kind::kInProcess, Kind::kGrpc),
                         [](const auto& kind) {
                           return kind.param == Kind::kInProcess ? "InProcess" : "Grpc";
                         });

TEST_P(ReplicaTest, DescribesTheModel) {
  Start();
  const ReplicaDescription description = replica_->Describe().value();
  EXPECT_EQ(description.model_name, "fake");
  EXPECT_EQ(description.identity, "identity-1");
  EXPECT_EQ(description.numerics_fingerprint, "fake-1");
  EXPECT_EQ(description.device, "fake");
  EXPECT_EQ(description.dtype, "float32");
  EXPECT_EQ(description.width, 8);
  EXPECT_EQ(description.vocabulary_rows, 1000);
  EXPECT_EQ(description.model_max_tokens, 512);
  EXPECT_EQ(description.max_input_tokens, 512);
  EXPECT_EQ(description.step_tokens, 100);
  EXPECT_EQ(description.max_batch_sequences, 64);
  EXPECT_EQ(description.max_queue_ms, 200);
  EXPECT_TRUE(replica_->Load().ready);
  EXPECT_EQ(replica_->Load().queued_tokens, 0);
}

TEST_P(ReplicaTest, AnswersInTheChunksOrder) {
  Start();
  Chunk chunk = MakeChunk({{1, 2}, {3}});
  chunk.output.dimensions = 4;
  auto rows = RunCoroutine(replica_->Submit(std::move(chunk)));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  std::vector<float> expected = FakeRow(std::vector{1, 2}, 4);
  const std::vector<float> second = FakeRow(std::vector{3}, 4);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(rows->dimensions, 4U);
  EXPECT_THAT(rows->values, ElementsAreArray(expected));
  EXPECT_EQ(rows->statuses.size(), 2U);
}

TEST_P(ReplicaTest, KeepsASequenceThatFailsApart) {
  Start({.not_finite_id = 7});
  auto rows = RunCoroutine(replica_->Submit(MakeChunk({{1}, {7, 2}, {3}})));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_TRUE(rows->statuses[0].ok());
  EXPECT_EQ(rows->statuses[1].code(), StatusCode::kInternal);
  EXPECT_THAT(rows->statuses[1].message(), HasSubstr("not finite"));
  ASSERT_TRUE(rows->statuses[2].ok());
  const std::vector<float> last(rows->values.begin() + 16, rows->values.end());
  EXPECT_EQ(last, FakeRow(std::vector{3}, 8));
}

TEST_P(ReplicaTest, PassesARefusalOnWithItsField) {
  Start();
  const Status bad_id = RunCoroutine(replica_->Submit(MakeChunk({{1}, {5000}}))).status();
  EXPECT_EQ(bad_id.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(bad_id.field(), "sequences[1]");
  EXPECT_THAT(bad_id.message(), HasSubstr("0..999: 5000"));
  Chunk wide = MakeChunk({{1}});
  wide.output.dimensions = 9;
  EXPECT_EQ(RunCoroutine(replica_->Submit(std::move(wide))).code(), StatusCode::kInvalidArgument);
  Chunk typed = MakeChunk({{1, 2}});
  typed.sequences[0].type_ids = {0, 9};
  EXPECT_THAT(RunCoroutine(replica_->Submit(std::move(typed))).status().message(),
              HasSubstr("token types"));
  Chunk late = MakeChunk({{1, 2}});
  late.sequences[0].pooling_start = 2;
  EXPECT_THAT(RunCoroutine(replica_->Submit(std::move(late))).status().message(),
              HasSubstr("pooling must start"));
}

TEST_P(ReplicaTest, IsNotReadyOnceItStops) {
  Start();
  core_->Stop(milliseconds(0));
  EXPECT_EQ(RunCoroutine(replica_->Submit(MakeChunk({{1}}))).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(replica_->Load().ready);
  EXPECT_THAT(replica_->Load().reason_unready, HasSubstr("stopping"));
}

TEST_P(ReplicaTest, SaysWhenTheQueueIsFull) {
  Start({.latency = std::chrono::milliseconds(5)});
  boost::asio::io_context& context = testing::LastingContext();
  std::vector<std::optional<Result<ChunkRows>>> results(300);
  for (auto& result : results) {
    testing::StartCoroutine(context, replica_->Submit(MakeChunk({std::vector<int32_t>(100, 1)})),
                            result);
  }
  context.run();
  size_t full = 0;
  for (const auto& result : results) {
    if (!result->ok()) {
      ASSERT_EQ(result->code(), StatusCode::kResourceExhausted) << result->status().ToString();
      EXPECT_GE(result->status().retry_after_seconds(), 1);
      ++full;
    }
  }
  EXPECT_GT(full, 0U);
  EXPECT_LT(full, results.size());
  EXPECT_TRUE(Eventually([&] { return replica_->Load().queued_tokens == 0; }));
}

TEST_P(ReplicaTest, ReturnsAtTheDeadlineEvenWhenTheEngineHangs) {
  Start();
  engine_->Hold();
  Chunk chunk = MakeChunk({{1}});
  chunk.deadline = Deadline::After(clock_.Now(), milliseconds(20));
  const auto rows = RunCoroutine(replica_->Submit(std::move(chunk)));
  EXPECT_EQ(rows.code(), StatusCode::kDeadlineExceeded);
  engine_->Release();  // the answer comes, and nobody looks at it
}

TEST_P(ReplicaTest, DoesNotComputeWhatIsDeadOnArrivalOrDiesInTheQueue) {
  Start();
  engine_->Hold();
  const int64_t steps = engine_->num_steps();
  boost::asio::io_context& context = testing::LastingContext();
  std::optional<Result<ChunkRows>> first;
  testing::StartCoroutine(context, replica_->Submit(MakeChunk({{1}})), first);
  context.poll();
  engine_->WaitForSteps(steps + 1);
  Chunk late = MakeChunk({{2}});
  late.deadline = Deadline::After(clock_.Now(), milliseconds(10));
  EXPECT_EQ(RunCoroutine(replica_->Submit(std::move(late))).code(), StatusCode::kDeadlineExceeded);
  LetTheServerHearOfIt();
  engine_->Release();
  context.restart();
  context.run();
  EXPECT_TRUE(first->ok());
  EXPECT_TRUE(RunCoroutine(replica_->Submit(MakeChunk({{3}}))).ok());
  EXPECT_FALSE(engine_->HasComputed(2));
}

TEST_P(ReplicaTest, DropsCancelledSequencesFromTheQueue) {
  Start();
  engine_->Hold();
  const int64_t steps = engine_->num_steps();
  boost::asio::io_context& context = testing::LastingContext();
  std::optional<Result<ChunkRows>> first;
  std::optional<Result<ChunkRows>> second;
  testing::StartCoroutine(context, replica_->Submit(MakeChunk({{1}})), first);
  context.poll();
  engine_->WaitForSteps(steps + 1);
  std::stop_source source;
  Chunk chunk = MakeChunk({{2}, {3}});
  chunk.cancelled = source.get_token();
  testing::StartCoroutine(context, replica_->Submit(std::move(chunk)), second);
  context.poll();
  EXPECT_TRUE(Eventually([&] { return core_->Load().queued_tokens == 2; }));
  source.request_stop();
  LetTheServerHearOfIt();
  engine_->Release();
  context.restart();
  context.run();
  ASSERT_TRUE(first && first->ok());
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->ok() ? (*second)->statuses[0].code() : second->code(), StatusCode::kCancelled);
  EXPECT_TRUE(RunCoroutine(replica_->Submit(MakeChunk({{4}}))).ok());
  EXPECT_FALSE(engine_->HasComputed(2));
}

}  // namespace
}  // namespace bouquet::ivy
