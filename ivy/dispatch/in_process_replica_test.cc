#include "ivy/dispatch/in_process_replica.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "testing/fake_step_engine.h"
#include "testing/run_coroutine.h"
#include "tulip/core.h"

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAreArray;
using testing::FakeRow;
using testing::FakeStepEngine;
using testing::FakeStepEngineOptions;
using testing::RunCoroutine;

class InProcessReplicaTest : public ::testing::Test {
 protected:
  void Start(const FakeStepEngineOptions& engine_options = {}) {
    auto engine = std::make_unique<FakeStepEngine>(engine_options);
    engine_ = engine.get();
    auto core = tulip::Core::Start(std::unique_ptr<tulip::StepEngine>(std::move(engine)),
                                   {.model_name = "fake",
                                    .identity = "identity-1",
                                    .step_tokens = 100,
                                    .max_batch_sequences = 64,
                                    .warm_up = {.budget = milliseconds(0)}},
                                   metrics_, clock_);
    ASSERT_TRUE(core.ok()) << core.status().ToString();
    core_ = std::move(core).value();
    replica_ = std::make_unique<InProcessReplica>(*core_);
  }

  static Chunk MakeChunk(const std::vector<std::vector<int32_t>>& ids) {
    Chunk chunk;
    for (const std::vector<int32_t>& sequence_ids : ids) {
      chunk.sequences.push_back({.ids = sequence_ids});
    }
    return chunk;
  }

  SystemClock clock_;
  Metrics metrics_;
  FakeStepEngine* engine_ = nullptr;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<InProcessReplica> replica_;
};

TEST_F(InProcessReplicaTest, DescribesTheCore) {
  Start();
  const ReplicaDescription& description = replica_->Describe();
  EXPECT_EQ(description.model_name, "fake");
  EXPECT_EQ(description.identity, "identity-1");
  EXPECT_EQ(description.width, 8);
  EXPECT_EQ(description.model_max_tokens, 512);
  EXPECT_EQ(description.step_tokens, 100);
  EXPECT_TRUE(replica_->Load().ready);
  EXPECT_EQ(replica_->Load().queued_tokens, 0);
}

TEST_F(InProcessReplicaTest, AnswersInTheChunksOrder) {
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

TEST_F(InProcessReplicaTest, PassesARefusalOn) {
  Start();
  EXPECT_EQ(RunCoroutine(replica_->Submit(MakeChunk({{5000}}))).code(),
            StatusCode::kInvalidArgument);
  core_->Stop(milliseconds(0));
  EXPECT_EQ(RunCoroutine(replica_->Submit(MakeChunk({{1}}))).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(replica_->Load().ready);
  EXPECT_EQ(replica_->Load().reason_unready, "stopping");
}

TEST_F(InProcessReplicaTest, ReturnsAtTheDeadlineEvenWhenTheEngineHangs) {
  Start();
  engine_->Hold();
  Chunk chunk = MakeChunk({{1}});
  chunk.deadline = Deadline::After(clock_.Now(), milliseconds(20));
  const auto rows = RunCoroutine(replica_->Submit(std::move(chunk)));
  EXPECT_EQ(rows.code(), StatusCode::kDeadlineExceeded);
  engine_->Release();  // the answer comes, and nobody looks at it
}

TEST_F(InProcessReplicaTest, DropsCancelledSequencesFromTheQueue) {
  Start();
  engine_->Hold();
  const int64_t steps = engine_->num_steps();
  boost::asio::io_context& context = testing::LastingContext();
  std::optional<Result<ChunkRows>> first;
  std::optional<Result<ChunkRows>> second;
  testing::StartCoroutine(context, replica_->Submit(MakeChunk({{1}})), first);
  context.poll();
  engine_->WaitForSteps(steps + 1);
  auto flag = std::make_shared<std::atomic<bool>>(false);
  Chunk chunk = MakeChunk({{2}, {3}});
  chunk.cancelled = flag;
  testing::StartCoroutine(context, replica_->Submit(std::move(chunk)), second);
  context.poll();
  replica_->Cancel(flag);
  engine_->Release();
  context.restart();
  context.run();
  ASSERT_TRUE(first && first->ok());
  ASSERT_TRUE(second && second->ok());
  EXPECT_EQ((*second)->statuses[0].code(), StatusCode::kCancelled);
  EXPECT_FALSE(engine_->HasComputed(2));
}

}  // namespace
}  // namespace bouquet::ivy
