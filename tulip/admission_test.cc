#include "tulip/admission.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/waiting_reply.h"

namespace bouquet::tulip {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::vector<Sequence> MakeChunk(int32_t num_sequences, int32_t num_tokens) {
  std::vector<Sequence> sequences(static_cast<size_t>(num_sequences));
  auto reply = std::make_shared<testing::WaitingReply>(std::stop_token());
  for (Sequence& sequence : sequences) {
    sequence.ids.assign(static_cast<size_t>(num_tokens), 1);
    sequence.reply = reply;
  }
  return sequences;
}

TEST(CheckRoomTest, LimitsTheQueueInTimeAtTheMeasuredRate) {
  QueueState queue{
      .queued_tokens = 1900, .tokens_per_second = 1000, .max_queue = milliseconds(2000)};
  EXPECT_TRUE(CheckRoom(queue, 100).ok());
  const Status full = CheckRoom(queue, 101);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("1900 tokens wait, 1900 ms of work"));
  EXPECT_THAT(full.message(), HasSubstr("2000 ms (--max-queue-ms)"));
  EXPECT_EQ(full.retry_after_seconds(), 2);
  queue.tokens_per_second = 2000;  // a faster engine may hold more
  EXPECT_TRUE(CheckRoom(queue, 101).ok());
}

TEST(CheckRoomTest, AdmitsAChunkOfAnySizeToAnEmptyQueue) {
  const QueueState queue{.queued_tokens = 0, .tokens_per_second = 10, .max_queue = milliseconds(1)};
  EXPECT_TRUE(CheckRoom(queue, 300'000).ok());
}

TEST(CheckRoomTest, AsksToWaitOneSecondAtLeast) {
  const QueueState queue{
      .queued_tokens = 5, .tokens_per_second = 1000, .max_queue = milliseconds(5)};
  EXPECT_EQ(CheckRoom(queue, 1).retry_after_seconds(), 1);
}

TEST(AdmissionTest, TakesAChunkWholeOrLeavesItWhole) {
  Admission admission(milliseconds(1000), 100);
  std::vector<Sequence> first = MakeChunk(2, 40);
  EXPECT_TRUE(admission.Admit(first, 80, TimePoint(milliseconds(7))).ok());
  EXPECT_TRUE(first.empty());
  std::vector<Sequence> second = MakeChunk(2, 20);
  EXPECT_EQ(admission.Admit(second, 40, {}).code(), StatusCode::kResourceExhausted);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[1].num_tokens(), 20);

  Scheduler scheduler({});
  admission.MoveArrivalsTo(scheduler);
  EXPECT_EQ(scheduler.num_tokens(), 80);
  EXPECT_EQ(admission.state().queued_tokens, 80);  // until the loop says that they have left
  ScheduledBatch batch;
  ASSERT_TRUE(scheduler.NextBatch({}, batch));
  EXPECT_EQ(batch.sequences[1].arrival, TimePoint(milliseconds(7)));
  admission.LeaveQueue(80);
  EXPECT_TRUE(admission.Admit(second, 40, {}).ok());
}

TEST(AdmissionTest, RefusesAfterCloseAndKeepsWhatItHad) {
  Admission admission(milliseconds(1000), 100);
  std::vector<Sequence> before = MakeChunk(1, 1);
  EXPECT_TRUE(admission.Admit(before, 1, {}).ok());
  admission.Close();
  EXPECT_FALSE(admission.accepting());
  EXPECT_FALSE(admission.exhausted());
  std::vector<Sequence> after = MakeChunk(1, 1);
  const Status status = admission.Admit(after, 1, {});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_GT(status.retry_after_seconds(), 0);
  Scheduler scheduler({});
  admission.MoveArrivalsTo(scheduler);
  EXPECT_EQ(scheduler.num_sequences(), 1);
  EXPECT_TRUE(admission.exhausted());
  EXPECT_FALSE(admission.abandoned());
}

TEST(AdmissionTest, EndsAWaitOnWakeEvenWhenItCameFirst) {
  Admission admission(milliseconds(1000), 100);
  Scheduler scheduler({});
  admission.Wake();
  admission.MoveArrivalsTo(scheduler);  // does not swallow it
  admission.WaitForArrivals();
  std::thread waker([&] { admission.Wake(); });
  admission.WaitForArrivals();
  waker.join();
  admission.MoveArrivalsTo(scheduler);
  EXPECT_TRUE(scheduler.empty());
}

TEST(AdmissionTest, NeverHoldsMoreThanItsLimitUnderManyThreads) {
  Admission admission(milliseconds(1000), 100);  // 100 tokens
  std::atomic<int64_t> admitted = 0;
  std::atomic<bool> stop = false;
  std::thread loop([&] {
    Scheduler scheduler({.step_tokens = 30});
    ScheduledBatch batch;
    int64_t seen = 0;
    while (!stop || !admission.exhausted() || !scheduler.empty()) {
      if (scheduler.empty()) {
        admission.WaitForArrivals();
      }
      admission.MoveArrivalsTo(scheduler);
      EXPECT_LE(admission.state().queued_tokens, 100);
      if (scheduler.NextBatch({}, batch)) {
        seen += batch.num_tokens();
        admission.LeaveQueue(batch.num_tokens());
      }
    }
    EXPECT_EQ(seen, admitted);
  });
  std::vector<std::thread> submitters;
  for (int t = 0; t < 4; ++t) {
    submitters.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::vector<Sequence> chunk = MakeChunk(3, 4);
        if (admission.Admit(chunk, 12, {}).ok()) {
          admitted += 12;
        }
      }
    });
  }
  for (std::thread& submitter : submitters) {
    submitter.join();
  }
  stop = true;
  admission.Close();
  loop.join();
  EXPECT_GT(admitted, 0);
}

}  // namespace
}  // namespace bouquet::tulip
