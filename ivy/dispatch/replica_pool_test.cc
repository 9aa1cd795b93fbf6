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
    pool = std::move(ReplicaPool::Create(std::move(replicas)).value());
  }
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

TEST(ReplicaPoolTest, CancelsOnEveryReplica) {
  PoolOfFakes pool({LoadOf(0), LoadOf(0)});
  auto flag = std::make_shared<std::atomic<bool>>(false);
  pool.pool->Cancel(flag);
  EXPECT_TRUE(flag->load());
  EXPECT_EQ(pool.fakes[0]->num_cancels(), 1);
  EXPECT_EQ(pool.fakes[1]->num_cancels(), 1);
}

TEST(ReplicaPoolTest, RefusesReplicasThatMustNotServeTogether) {
  const auto create = [](const ReplicaDescription& second) {
    std::vector<std::unique_ptr<Replica>> replicas;
    replicas.push_back(std::make_unique<FakeReplica>());
    replicas.push_back(std::make_unique<FakeReplica>(second));
    return ReplicaPool::Create(std::move(replicas)).code();
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
  EXPECT_EQ(ReplicaPool::Create({}).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace bouquet::ivy
