#include "ivy/dispatch/replica_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_replica.h"
#include "testing/run_coroutine.h"

namespace bouquet::ivy {
namespace {

using testing::FakeReplica;
using testing::FakeReplicaDescription;
using ::testing::HasSubstr;
using testing::RunCoroutine;

ReplicaLoad LoadOf(int64_t queued_tokens, bool ready = true) {
  return {.queued_tokens = queued_tokens,
          .tokens_per_second = 1000,
          .ready = ready,
          .reason_unready = ready ? "" : "gone"};
}

Chunk OneSequence() {
  Chunk chunk;
  chunk.sequences.push_back({.ids = {1, 2}});
  return chunk;
}

struct PoolOfFakes {
  explicit PoolOfFakes(const std::vector<ReplicaLoad>& loads) {
    std::vector<std::unique_ptr<Replica>> replicas;
    for (const ReplicaLoad& load : loads) {
      auto replica = std::make_unique<FakeReplica>();
      replica->SetLoad(load);
      fakes.push_back(replica.get());
      replicas.push_back(std::move(replica));
    }
    pool = std::move(ReplicaPool::Create(std::move(replicas), "fake", metrics).value());
  }
  Metrics metrics;
  std::vector<FakeReplica*> fakes;
  std::unique_ptr<ReplicaPool> pool;
};

TEST(LeastQueuedTest, PicksTheReadyReplicaWithTheFewestTokens) {
  EXPECT_EQ(LeastQueued(std::vector{LoadOf(30), LoadOf(10), LoadOf(20)}), 1U);
  EXPECT_EQ(LeastQueued(std::vector{LoadOf(30), LoadOf(10, false), LoadOf(20)}), 2U);
}

TEST(LeastQueuedTest, PicksTheFirstOfEquals) {
  EXPECT_EQ(LeastQueued(std::vector{LoadOf(5), LoadOf(5)}), 0U);
}

TEST(LeastQueuedTest, PicksNobodyWhenNobodyIsReady) {
  EXPECT_EQ(LeastQueued({}), std::nullopt);
  EXPECT_EQ(LeastQueued(std::vector{LoadOf(1, false)}), std::nullopt);
}

TEST(ReplicaPoolTest, SendsAChunkToTheLeastLoadedReplica) {
  PoolOfFakes pool({LoadOf(100), LoadOf(7)});
  ASSERT_TRUE(RunCoroutine(pool.pool->Submit(OneSequence())).ok());
  EXPECT_EQ(pool.fakes[0]->num_chunks(), 0);
  EXPECT_EQ(pool.fakes[1]->num_chunks(), 1);
}

TEST(ReplicaPoolTest, IsUnavailableWhenNoReplicaIsReady) {
  PoolOfFakes pool({LoadOf(0, false), LoadOf(0, false)});
  const auto rows = RunCoroutine(pool.pool->Submit(OneSequence()));
  EXPECT_EQ(rows.code(), StatusCode::kUnavailable);
  EXPECT_THAT(rows.status().message(), HasSubstr("gone"));
  EXPECT_FALSE(pool.pool->Load().ready);
}

TEST(ReplicaPoolTest, IsReadyAsLongAsOneReplicaIs) {
  PoolOfFakes pool({LoadOf(10, false), LoadOf(2500)});
  const ReplicaLoad load = pool.pool->Load();
  EXPECT_TRUE(load.ready);
  EXPECT_EQ(load.queued_tokens, 2510);
  EXPECT_EQ(load.reason_unready, "");
  EXPECT_EQ(pool.pool->RetryAfterSeconds(), 2);  // 2510 tokens at 2000 a second
}

TEST(ReplicaPoolTest, SendsAChunkOnceMoreWhenItsReplicaIsLostOrFull) {
  for (const Status& refusal : {Unavailable("lost"), ResourceExhausted("full")}) {
    PoolOfFakes pool({LoadOf(1), LoadOf(5), LoadOf(9)});
    pool.fakes[0]->RefuseWith([&](int) { return refusal; });
    const auto rows = RunCoroutine(pool.pool->Submit(OneSequence()));
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    EXPECT_EQ(pool.fakes[0]->num_chunks(), 1);
    EXPECT_EQ(pool.fakes[1]->num_chunks(), 1);
    EXPECT_EQ(pool.fakes[2]->num_chunks(), 0);
    EXPECT_THAT(pool.metrics.Render(),
                HasSubstr("bouquet_chunks_sent_again_total{model=\"fake\"} 1"));
  }
}

TEST(ReplicaPoolTest, SendsAChunkTwiceAtMost) {
  PoolOfFakes pool({LoadOf(1), LoadOf(2), LoadOf(3)});
  for (FakeReplica* fake : pool.fakes) {
    fake->RefuseWith([](int) { return Unavailable("lost"); });
  }
  EXPECT_EQ(RunCoroutine(pool.pool->Submit(OneSequence())).code(), StatusCode::kUnavailable);
  EXPECT_EQ(pool.fakes[2]->num_chunks(), 0);
}

TEST(ReplicaPoolTest, DoesNotSendAgainWhatIsWrongOrUnwanted) {
  PoolOfFakes wrong({LoadOf(1), LoadOf(2)});
  wrong.fakes[0]->RefuseWith([](int) { return InvalidArgument("bad id"); });
  EXPECT_EQ(RunCoroutine(wrong.pool->Submit(OneSequence())).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.fakes[1]->num_chunks(), 0);

  PoolOfFakes unwanted({LoadOf(1), LoadOf(2)});
  unwanted.fakes[0]->RefuseWith([](int) { return Unavailable("lost"); });
  std::stop_source source;
  source.request_stop();
  Chunk chunk = OneSequence();
  chunk.cancelled = source.get_token();
  EXPECT_FALSE(RunCoroutine(unwanted.pool->Submit(std::move(chunk))).ok());
  EXPECT_EQ(unwanted.fakes[1]->num_chunks(), 0);
}

TEST(ReplicaPoolTest, CountsItsReadyReplicas) {
  PoolOfFakes pool({LoadOf(1), LoadOf(2, false), LoadOf(3)});
  EXPECT_EQ(pool.pool->num_ready(), 2U);
  EXPECT_EQ(pool.pool->num_replicas(), 3U);
}

TEST(ReplicaPoolTest, RefusesReplicasThatMustNotServeTogether) {
  Metrics metrics;
  const auto create = [&metrics](const ReplicaDescription& second) {
    std::vector<std::unique_ptr<Replica>> replicas;
    replicas.push_back(std::make_unique<FakeReplica>());
    replicas.push_back(std::make_unique<FakeReplica>(second));
    return ReplicaPool::Create(std::move(replicas), "fake", metrics).code();
  };
  ReplicaDescription other = FakeReplicaDescription();
  EXPECT_EQ(create(other), StatusCode::kOk);
  other.numerics_fingerprint = "fake-2";
  EXPECT_EQ(create(other), StatusCode::kOk);  // only a warning
  other.identity = "identity-2";
  EXPECT_EQ(create(other), StatusCode::kFailedPrecondition);
  other = FakeReplicaDescription();
  other.max_input_tokens -= 1;
  EXPECT_EQ(create(other), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReplicaPool::Create({}, "fake", metrics).code(), StatusCode::kFailedPrecondition);
}

TEST(ReplicaPoolTest, HoldsEveryReplicaToTheFolderThatItWasGiven) {
  Metrics metrics;
  ReplicaPool pool("identity-of-the-gateway", "fake", metrics);
  const Status refused = pool.Admit(FakeReplicaDescription());
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("identity-of-the-gateway"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(pool.WaitForModel(stop.get_token()));
  ReplicaDescription right = FakeReplicaDescription();
  right.identity = "identity-of-the-gateway";
  EXPECT_TRUE(pool.Admit(right).ok());
  EXPECT_TRUE(pool.WaitForModel({}));
  EXPECT_EQ(pool.Describe(), right);
}

}  // namespace
}  // namespace bouquet::ivy
