#include "tulip/scheduler.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/waiting_reply.h"
#include "tulip/scheduler_checker.h"

namespace bouquet::tulip {
namespace {

using model::TrafficClass;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::FakeClock;
using ::testing::IsEmpty;

class SchedulerTest : public ::testing::Test {
 protected:
  // The first id names the sequence.
  Sequence Make(int32_t id, int32_t num_tokens,
                TrafficClass traffic_class = TrafficClass::kInteractive) const {
    Sequence sequence;
    sequence.ids.assign(static_cast<size_t>(num_tokens), id);
    sequence.traffic_class = traffic_class;
    sequence.arrival = clock_.Now();
    sequence.reply = std::make_shared<testing::WaitingReply>(std::stop_token());
    return sequence;
  }
  Sequence MakeBulk(int32_t id, int32_t num_tokens) const {
    return Make(id, num_tokens, TrafficClass::kBulk);
  }

  std::vector<int32_t> NextIds(Scheduler& scheduler) {
    scheduler.NextBatch(clock_.Now(), batch_);
    return Ids(batch_.sequences);
  }
  static std::vector<int32_t> Ids(const std::vector<Sequence>& sequences) {
    std::vector<int32_t> ids;
    for (const Sequence& sequence : sequences) {
      ids.push_back(sequence.ids.front());
    }
    return ids;
  }

  FakeClock clock_;
  ScheduledBatch batch_;
};

TEST_F(SchedulerTest, HasNothingToDoWhenEmpty) {
  Scheduler scheduler({});
  EXPECT_FALSE(scheduler.NextBatch(clock_.Now(), batch_));
  EXPECT_TRUE(scheduler.empty());
}

TEST_F(SchedulerTest, PacksSequencesEndToEndInOrderOfArrival) {
  Scheduler scheduler({});
  scheduler.Add(Make(1, 2));
  scheduler.Add(Make(2, 1));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1, 2));
  EXPECT_THAT(batch_.input.token_ids, ElementsAre(1, 1, 2));
  EXPECT_THAT(batch_.input.positions, ElementsAre(0, 1, 0));
  EXPECT_THAT(batch_.input.sequence_offsets, ElementsAre(0, 2, 3));
}

TEST_F(SchedulerTest, HoldsBackSequenceThatWouldExceedTokenBudget) {
  Scheduler scheduler({.step_tokens = 10});
  scheduler.Add(Make(1, 6));
  scheduler.Add(Make(2, 5));
  scheduler.Add(Make(3, 1));  // would fit, but came later than 2
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(2, 3));
}

TEST_F(SchedulerTest, FillsAStepToTheLastToken) {
  Scheduler scheduler({.step_tokens = 10});
  scheduler.Add(Make(1, 6));
  scheduler.Add(Make(2, 4));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1, 2));
}

TEST_F(SchedulerTest, RunsSequenceOverTheTargetAlone) {
  Scheduler scheduler({.step_tokens = 10});
  scheduler.Add(Make(1, 3));
  scheduler.Add(Make(2, 25));
  scheduler.Add(Make(3, 3));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(2));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(3));
}

TEST_F(SchedulerTest, HoldsNoMoreSequencesInAStepThanAllowed) {
  Scheduler scheduler({.max_batch_sequences = 2});
  for (int32_t id = 1; id <= 3; ++id) {
    scheduler.Add(Make(id, 1));
  }
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1, 2));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(3));
}

TEST_F(SchedulerTest, TakesInteractiveWorkBeforeBulkThatCameEarlier) {
  Scheduler scheduler({.step_tokens = 10});
  scheduler.Add(MakeBulk(1, 6));
  scheduler.Add(Make(2, 6));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(2));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1));
}

TEST_F(SchedulerTest, FillsTheRestOfAStepWithBulkWork) {
  Scheduler scheduler({.step_tokens = 10});
  scheduler.Add(MakeBulk(1, 4));
  scheduler.Add(Make(2, 6));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(2, 1));
}

TEST_F(SchedulerTest, GivesAgedBulkWorkEveryFourthStepUnderEndlessInteractiveLoad) {
  Scheduler scheduler({.step_tokens = 10, .bulk_age = milliseconds(500)});
  for (int32_t id = 1; id <= 2; ++id) {
    scheduler.Add(MakeBulk(id, 10));
  }
  std::string order;
  for (int step = 0; step < 12; ++step) {
    if (step == 2) {
      clock_.Advance(milliseconds(500));
    }
    scheduler.Add(Make(100 + step, 10));
    scheduler.Add(Make(200 + step, 10));  // more than the steps can take
    order += NextIds(scheduler).front() < 100 ? 'b' : 'i';
  }
  EXPECT_EQ(order, "iiiiibiiibii");
}

TEST_F(SchedulerTest, DropsExpiredSequencesWhereverTheyStand) {
  Scheduler scheduler({.step_tokens = 2});
  for (int32_t id = 1; id <= 4; ++id) {
    Sequence sequence = Make(id, 2);
    if (id % 2 == 0) {
      sequence.deadline = Deadline::After(clock_.Now(), milliseconds(10));
    }
    scheduler.Add(std::move(sequence));
  }
  clock_.Advance(milliseconds(10));
  EXPECT_THAT(NextIds(scheduler), ElementsAre(1));
  EXPECT_THAT(Ids(batch_.expired), ElementsAre(2, 4));
  EXPECT_EQ(scheduler.num_tokens(), 2);
  EXPECT_THAT(NextIds(scheduler), ElementsAre(3));
  EXPECT_THAT(batch_.expired, IsEmpty());
}

TEST_F(SchedulerTest, DropsCancelledSequencesAndReportsThemOnce) {
  Scheduler scheduler({});
  std::stop_source source;
  Sequence cancelled = Make(1, 5);
  cancelled.reply = std::make_shared<testing::WaitingReply>(source.get_token());
  scheduler.Add(std::move(cancelled));
  source.request_stop();
  EXPECT_THAT(NextIds(scheduler), IsEmpty());
  EXPECT_THAT(Ids(batch_.cancelled), ElementsAre(1));
  EXPECT_TRUE(scheduler.empty());
  EXPECT_EQ(scheduler.num_tokens(), 0);
  EXPECT_THAT(NextIds(scheduler), IsEmpty());
  EXPECT_THAT(batch_.cancelled, IsEmpty());
}

TEST_F(SchedulerTest, MovesTokensInsteadOfCopyingThem) {
  Scheduler scheduler({});
  Sequence sequence = Make(1, 5);
  const int32_t* data = sequence.ids.data();
  scheduler.Add(std::move(sequence));
  NextIds(scheduler);
  EXPECT_EQ(batch_.sequences.front().ids.data(), data);
}

TEST_F(SchedulerTest, GivesUpEverythingThatWaits) {
  Scheduler scheduler({});
  scheduler.Add(MakeBulk(1, 5));
  scheduler.Add(Make(2, 5));
  std::vector<Sequence> taken;
  scheduler.TakeAll(taken);
  EXPECT_THAT(Ids(taken), ElementsAre(2, 1));
  EXPECT_TRUE(scheduler.empty());
  EXPECT_EQ(scheduler.num_tokens(), 0);
}

class RandomSchedulerTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomSchedulerTest, KeepsItsInvariants) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  const auto below = [&](uint32_t limit) { return static_cast<int32_t>(random() % limit); };
  SchedulerOptions options;
  options.step_tokens = 1 + below(300);
  options.max_batch_sequences = 1 + below(12);
  options.bulk_age = milliseconds(below(50));
  SchedulerChecker checker(options);
  FakeClock clock;
  const auto arrivals = static_cast<uint32_t>(1 + below(4));  // from starved to overloaded
  for (int round = 0; round < 300; ++round) {
    for (int32_t i = below(2 * arrivals); i > 0; --i) {
      const bool has_deadline = below(4) == 0;
      checker.Add(
          clock.Now(), below(3) == 0 ? TrafficClass::kBulk : TrafficClass::kInteractive,
          1 + below(below(10) == 0 ? 400 : 60),
          has_deadline ? Deadline::After(clock.Now(), milliseconds(below(40))) : Deadline::None());
    }
    if (below(5) == 0) {
      checker.Cancel(random());
    }
    clock.Advance(milliseconds(below(8)));
    checker.Step(clock.Now());
  }
  for (int steps = 0; !checker.empty(); ++steps) {
    ASSERT_LT(steps, 10'000);
    checker.Step(clock.Now());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSchedulerTest, ::testing::Range(0U, 60U));

}  // namespace
}  // namespace bouquet::tulip
