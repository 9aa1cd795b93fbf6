#include "bench/load/recovery.h"

#include <gtest/gtest.h>

namespace bouquet::bench {
namespace {

using namespace std::chrono_literals;

/// Windows of 250 ms with ten answers each.
std::vector<Window> Windows(const std::vector<std::chrono::milliseconds>& latencies) {
  std::vector<Window> windows;
  for (const auto latency : latencies) {
    Window& window = windows.emplace_back();
    window.ok = 10;
    window.latency.Record(latency, 10);
  }
  return windows;
}

// One second of base, half a second of burst.
const BurstPlan kBurst{.per_second = 100, .start = 1s, .duration = 500ms};

TEST(RecoveryTest, CountsFromTheBurstsEndToTheFirstOfTwoCalmWindows) {
  const auto outcome =
      JudgeBurst(Windows({5ms, 5ms, 5ms, 5ms, 50ms, 80ms, 60ms, 30ms, 9ms, 8ms, 5ms}), kBurst);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_NEAR(outcome->base_p99_ms, 5, 0.05);
  EXPECT_DOUBLE_EQ(outcome->recovery_seconds.value(), 0.5);
  EXPECT_DOUBLE_EQ(outcome->goodput_per_second, 40);
  EXPECT_DOUBLE_EQ(outcome->refused_share, 0);
}

TEST(RecoveryTest, IsAtOnceWhenNothingHappened) {
  const auto outcome = JudgeBurst(Windows(std::vector(9, 5ms)), kBurst);
  EXPECT_DOUBLE_EQ(outcome.value().recovery_seconds.value(), 0);
}

TEST(RecoveryTest, DoesNotTrustASingleCalmWindow) {
  const auto outcome =
      JudgeBurst(Windows({5ms, 5ms, 5ms, 5ms, 50ms, 80ms, 5ms, 40ms, 5ms, 5ms}), kBurst);
  EXPECT_DOUBLE_EQ(outcome.value().recovery_seconds.value(), 0.5);
}

TEST(RecoveryTest, LearnsNothingFromAWindowInWhichNothingWasDue) {
  std::vector<Window> windows =
      Windows({5ms, 5ms, 5ms, 5ms, 50ms, 80ms, 60ms, 0ms, 0ms, 40ms, 5ms, 0ms, 5ms});
  windows[7] = windows[8] = windows[11] = Window();
  EXPECT_DOUBLE_EQ(JudgeBurst(windows, kBurst).value().recovery_seconds.value(), 1);
}

TEST(RecoveryTest, IsNotOverWhileRequestsAreRefused) {
  std::vector<Window> windows = Windows(std::vector(10, 5ms));
  windows[4].failed = 30;
  windows[6].failed = 1;
  const auto outcome = JudgeBurst(windows, kBurst);
  EXPECT_DOUBLE_EQ(outcome.value().recovery_seconds.value(), 0.25);
  EXPECT_DOUBLE_EQ(outcome->refused_share, 0.6);
}

TEST(RecoveryTest, SaysNothingWhereItDidNotHappenOrHasNoBase) {
  EXPECT_FALSE(JudgeBurst(Windows({5ms, 5ms, 5ms, 5ms, 50ms, 80ms, 60ms, 30ms, 20ms}), kBurst)
                   .value()
                   .recovery_seconds.has_value());
  EXPECT_FALSE(JudgeBurst({}, kBurst).has_value());
}

}  // namespace
}  // namespace bouquet::bench
