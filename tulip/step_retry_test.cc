#include "tulip/step_retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/waiting_reply.h"

namespace bouquet::tulip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Sequence> MakeStep(int32_t count) {
  std::vector<Sequence> sequences;
  for (int32_t id = 0; id < count; ++id) {
    Sequence sequence;
    sequence.ids = {id};
    sequence.reply = std::make_shared<testing::WaitingReply>(std::stop_token());
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

bool Holds(const std::vector<Sequence>& sequences, int32_t id) {
  for (const Sequence& sequence : sequences) {
    if (sequence.ids.front() == id) {
      return true;
    }
  }
  return false;
}

TEST(StepRetryTest, FindsThePoisonedSequenceAndComputesAllOthers) {
  for (int32_t poison = 0; poison < 100; poison += 9) {
    StepRetry retry;
    std::vector<Sequence> failed = MakeStep(100);
    ASSERT_TRUE(retry.Add(failed, /*was_whole_step=*/true));
    std::vector<int32_t> given_up;
    int32_t computed = 0;
    int32_t steps = 0;
    ScheduledBatch batch;
    while (retry.NextBatch({}, batch)) {
      ASSERT_LT(++steps, 20);
      if (!Holds(batch.sequences, poison)) {
        computed += static_cast<int32_t>(batch.sequences.size());
        retry.NoteSuccess();
      } else if (!retry.Add(batch.sequences, /*was_whole_step=*/true)) {
        for (const Sequence& sequence : batch.sequences) {
          given_up.push_back(sequence.ids.front());
        }
      }
    }
    EXPECT_THAT(given_up, ElementsAre(poison));
    EXPECT_EQ(computed, 99);
  }
}

TEST(StepRetryTest, DoesNotTryASingleSequenceAgain) {
  StepRetry retry;
  std::vector<Sequence> failed = MakeStep(1);
  EXPECT_FALSE(retry.Add(failed, /*was_whole_step=*/true));
  EXPECT_THAT(failed, SizeIs(1));
  EXPECT_TRUE(retry.empty());
}

TEST(StepRetryTest, TriesASingleSuspectOfALargerStepAlone) {
  StepRetry retry;
  std::vector<Sequence> suspect = MakeStep(1);
  ASSERT_TRUE(retry.Add(suspect, /*was_whole_step=*/false));
  EXPECT_THAT(suspect, IsEmpty());
  ScheduledBatch batch;
  ASSERT_TRUE(retry.NextBatch({}, batch));
  EXPECT_THAT(batch.sequences, SizeIs(1));
  EXPECT_TRUE(retry.empty());
  EXPECT_FALSE(retry.Add(batch.sequences, /*was_whole_step=*/true));
}

TEST(StepRetryTest, GivesUpOnAnEngineThatFailsEveryStep) {
  StepRetry retry;
  std::vector<Sequence> failed = MakeStep(512);
  size_t answered = retry.Add(failed, /*was_whole_step=*/true) ? 0 : failed.size();
  int32_t steps = 1;
  ScheduledBatch batch;
  while (retry.NextBatch({}, batch)) {
    ++steps;
    if (!retry.Add(batch.sequences, /*was_whole_step=*/true)) {
      answered += batch.sequences.size();
    }
  }
  EXPECT_EQ(answered, 512U);
  EXPECT_LT(steps, 50);  // not 1,023
}

TEST(StepRetryTest, DropsCancelledAndExpiredSequences) {
  StepRetry retry;
  std::vector<Sequence> failed = MakeStep(4);
  std::stop_source source;
  source.request_stop();
  failed[0].reply = std::make_shared<testing::WaitingReply>(source.get_token());
  failed[1].deadline = {TimePoint(Microseconds(5))};
  ASSERT_TRUE(retry.Add(failed, /*was_whole_step=*/true));
  ScheduledBatch batch;
  ASSERT_TRUE(retry.NextBatch(TimePoint(Microseconds(5)), batch));
  EXPECT_THAT(batch.cancelled, SizeIs(1));
  EXPECT_THAT(batch.expired, SizeIs(1));
  EXPECT_THAT(batch.sequences, SizeIs(2));  // the first half was dead, so the second is up
  EXPECT_FALSE(retry.NextBatch({}, batch));
  EXPECT_THAT(batch.sequences, IsEmpty());
}

}  // namespace
}  // namespace bouquet::tulip
