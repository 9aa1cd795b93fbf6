// Many clients at once against one core over a fake engine.
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "testing/chunks.h"
#include "testing/fake_step_engine.h"
#include "testing/waiting_reply.h"
#include "tulip/core.h"

namespace bouquet::tulip {
namespace {

using std::chrono::milliseconds;
using testing::FakeRow;
using testing::FakeStepEngine;
using testing::FakeStepEngineOptions;
using testing::MakeChunk;
using testing::RowAt;
using testing::WaitingReply;

constexpr int32_t kPoisonId = 700;
constexpr int32_t kNotFiniteId = 701;

/// One of many clients: sends random chunks, some of which are bulk, hurried, cancelled or
/// poisoned, and checks every answer.
class BusyClient {
 public:
  BusyClient(Core& core, const Clock& clock, uint32_t seed)
      : core_(core), clock_(clock), random_(seed) {}

  bool SendOne() {
    const std::vector<std::vector<int32_t>> ids = RandomIds();
    std::stop_source source;
    auto reply = std::make_shared<WaitingReply>(source.get_token());
    const bool hurried = random_() % 10 == 0;
    std::vector<Sequence> chunk = MakeChunk(ids);
    const bool bulk = random_() % 2 == 0;
    for (Sequence& sequence : chunk) {
      sequence.traffic_class =
          bulk ? model::TrafficClass::kBulk : model::TrafficClass::kInteractive;
      sequence.deadline =
          hurried ? Deadline::After(clock_.Now(), milliseconds(1)) : Deadline::None();
    }
    if (!core_.Submit(std::move(chunk), reply).ok()) {
      EXPECT_EQ(reply->completions(), 0);
      return false;
    }
    const bool cancels = random_() % 10 == 0;
    if (cancels) {
      source.request_stop();
    }
    reply->Wait();
    EXPECT_EQ(reply->completions(), 1);
    for (size_t i = 0; i < ids.size(); ++i) {
      CheckAnswer(ids[i], *reply, i, cancels, hurried);
    }
    return true;
  }

 private:
  std::vector<std::vector<int32_t>> RandomIds() {
    std::vector<std::vector<int32_t>> ids(1 + random_() % 8);
    for (auto& sequence : ids) {
      sequence.resize(1 + random_() % 60);
      for (int32_t& id : sequence) {
        id = static_cast<int32_t>(random_() % 600);
      }
      if (random_() % 200 == 0) {
        sequence.front() = random_() % 2 == 0 ? kPoisonId : kNotFiniteId;
      }
    }
    return ids;
  }

  static void CheckAnswer(const std::vector<int32_t>& ids, WaitingReply& reply, size_t index,
                          bool cancels, bool hurried) {
    const Status& status = reply.outcomes()[index].status;
    const bool bad = ids.front() >= kPoisonId;
    if (status.ok()) {
      EXPECT_FALSE(bad);
      EXPECT_EQ(RowAt(reply, index), FakeRow(ids, 8));
      return;
    }
    EXPECT_TRUE(status.code() == StatusCode::kUnavailable ||
                (bad && status.code() == StatusCode::kInternal) ||
                (cancels && status.code() == StatusCode::kCancelled) ||
                (hurried && status.code() == StatusCode::kDeadlineExceeded))
        << status.ToString();
  }

  Core& core_;
  const Clock& clock_;
  std::mt19937 random_;
};

/// Many clients against one core, with everything that can go wrong, and a stop in the middle:
/// every accepted chunk is answered exactly once, with the right rows or a reason.
class BusyCoreTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(BusyCoreTest, AnswersEveryAcceptedChunkExactlyOnce) {
  constexpr int kClients = 6;
  constexpr int kChunksPerClient = 150;
  const SystemClock clock;
  Metrics metrics;
  auto engine = std::make_unique<FakeStepEngine>(
      FakeStepEngineOptions{.steps_under_way = GetParam(),
                            .latency = std::chrono::microseconds(200),
                            .poison_id = kPoisonId,
                            .not_finite_id = kNotFiniteId});
  auto started = Core::Start(std::unique_ptr<StepEngine>(std::move(engine)),
                             {.model_name = "fake",
                              .step_tokens = 200,
                              .max_batch_sequences = 64,
                              .warm_up = {.budget = milliseconds(0)}},
                             metrics, clock);
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  Core& core = **started;

  std::atomic<int> accepted = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> clients;
  for (uint32_t seed = 1; seed <= kClients; ++seed) {
    clients.emplace_back([&, seed] {
      BusyClient client(core, clock, seed);
      for (int i = 0; i < kChunksPerClient; ++i) {
        ++(client.SendOne() ? accepted : refused);
      }
    });
  }
  while (accepted + refused < kClients * kChunksPerClient / 2) {
    std::this_thread::yield();
  }
  core.Stop(milliseconds(1));
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(accepted + refused, kClients * kChunksPerClient);
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(core.Load().queued_tokens, 0);
  EXPECT_EQ(core.Load().under_way_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(StepsUnderWay, BusyCoreTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace bouquet::tulip
