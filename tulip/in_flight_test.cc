#include "tulip/in_flight.h"

#include <thread>

#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/waiting_reply.h"

namespace bouquet::tulip {
namespace {

constexpr Microseconds kLead(100);

void PushStep(InFlight& in_flight, const Clock& clock, Microseconds expected) {
  ScheduledBatch batch;
  Sequence sequence;
  sequence.ids = {1, 2};
  sequence.reply = std::make_shared<testing::WaitingReply>(std::stop_token());
  batch.Append(std::move(sequence));
  in_flight.Push({}, batch, clock.Now(), expected);
}

TEST(InFlightTest, LaunchesAtOnceWhenNothingIsUnderWay) {
  const testing::FakeClock clock;
  InFlight in_flight(1, kLead, clock);
  in_flight.WaitUntilLaunch();
  EXPECT_EQ(in_flight.num_tokens(), 0);
}

TEST(InFlightTest, HasNoRoomUntilTheOldestStepIsDelivered) {
  const testing::FakeClock clock;
  InFlight in_flight(1, kLead, clock);
  PushStep(in_flight, clock, Microseconds(0));
  EXPECT_EQ(in_flight.num_tokens(), 2);
  std::atomic<bool> delivered = false;
  std::thread completer([&] {
    StepInFlight* step = in_flight.WaitForFront();
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->num_tokens, 2);
    delivered = true;
    in_flight.PopFront({});
  });
  in_flight.WaitUntilLaunch();
  EXPECT_TRUE(delivered);
  completer.join();
}

TEST(InFlightTest, WaitsForTheLaunchMomentOfASecondStep) {
  testing::FakeClock clock;
  InFlight in_flight(2, kLead, clock);
  PushStep(in_flight, clock, Microseconds(1000));
  std::atomic<bool> due = false;
  std::thread time([&] {
    clock.Advance(Microseconds(899));
    clock.Advance(Microseconds(1));
    due = true;
  });
  in_flight.WaitUntilLaunch();
  // The moment came, or came between the two lines of the other thread.
  EXPECT_GE(clock.Now(), TimePoint(Microseconds(900)));
  time.join();
  EXPECT_TRUE(due);
}

TEST(InFlightTest, NamesTheLaunchMomentWithoutWaitingForIt) {
  testing::FakeClock clock;
  InFlight in_flight(2, kLead, clock);
  EXPECT_TRUE(in_flight.MayLaunch());
  EXPECT_EQ(in_flight.Front(), nullptr);
  PushStep(in_flight, clock, Microseconds(1000));
  EXPECT_NE(in_flight.Front(), nullptr);
  EXPECT_EQ(in_flight.LaunchMoment(), TimePoint(Microseconds(900)));
  EXPECT_FALSE(in_flight.MayLaunch());
  clock.Advance(Microseconds(900));
  EXPECT_TRUE(in_flight.MayLaunch());
  PushStep(in_flight, clock, Microseconds(1000));
  EXPECT_EQ(in_flight.LaunchMoment(), std::nullopt);
  EXPECT_FALSE(in_flight.MayLaunch());
}

TEST(InFlightTest, ExpectsStepsToEndOneAfterTheOther) {
  testing::FakeClock clock;
  InFlight in_flight(2, kLead, clock);
  PushStep(in_flight, clock, Microseconds(1000));
  PushStep(in_flight, clock, Microseconds(500));
  in_flight.WaitForFront();
  in_flight.PopFront({});
  EXPECT_EQ(in_flight.WaitForFront()->expected_end, TimePoint(Microseconds(1500)));
}

TEST(InFlightTest, ReportsAStepThatIsOverdue) {
  testing::FakeClock clock;
  InFlight in_flight(1, kLead, clock);
  EXPECT_FALSE(in_flight.IsOverdue(clock.Now(), Microseconds(50)));
  PushStep(in_flight, clock, Microseconds(1000));
  clock.Advance(Microseconds(1050));
  EXPECT_FALSE(in_flight.IsOverdue(clock.Now(), Microseconds(50)));
  clock.Advance(Microseconds(1));
  EXPECT_TRUE(in_flight.IsOverdue(clock.Now(), Microseconds(50)));
}

TEST(InFlightTest, GivesOutcomesToTheLoopOnce) {
  const testing::FakeClock clock;
  InFlight in_flight(1, kLead, clock);
  PushStep(in_flight, clock, Microseconds(0));
  in_flight.WaitForFront();
  in_flight.PopFront({.num_tokens = 2, .duration = Microseconds(7)});
  std::vector<StepOutcome> outcomes;
  EXPECT_TRUE(in_flight.TakeOutcomes(outcomes));
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].duration, Microseconds(7));
  PushStep(in_flight, clock, Microseconds(0));
  EXPECT_FALSE(in_flight.TakeOutcomes(outcomes));  // there is more to come
  EXPECT_EQ(outcomes.size(), 1U);
}

TEST(InFlightTest, EndsTheCompleterOnceClosedAndEmpty) {
  const testing::FakeClock clock;
  InFlight in_flight(1, kLead, clock);
  PushStep(in_flight, clock, Microseconds(0));
  in_flight.Close();
  ASSERT_NE(in_flight.WaitForFront(), nullptr);
  in_flight.PopFront({});
  EXPECT_EQ(in_flight.WaitForFront(), nullptr);
}

}  // namespace
}  // namespace bouquet::tulip
