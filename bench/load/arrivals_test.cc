#include "bench/load/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bouquet::bench {
namespace {

using namespace std::chrono_literals;
using Spacing = ArrivalPlan::Spacing;
using ::testing::ElementsAre;

std::vector<std::chrono::nanoseconds> All(const ArrivalPlan& plan, size_t part = 0,
                                          size_t num_parts = 1) {
  Arrivals arrivals(plan, part, num_parts);
  std::vector<std::chrono::nanoseconds> moments;
  while (const auto at = arrivals.Next()) {
    moments.push_back(*at);
  }
  return moments;
}

TEST(ArrivalsTest, SpacesEvenlyFromTheStart) {
  EXPECT_THAT(All({.spacing = Spacing::kEven, .phases = {{10, 400ms}}}),
              ElementsAre(0ms, 100ms, 200ms, 300ms));
}

TEST(ArrivalsTest, GoesThroughPhasesOneAfterTheOther) {
  EXPECT_THAT(All({.spacing = Spacing::kEven, .phases = {{10, 200ms}, {20, 100ms}, {10, 100ms}}}),
              ElementsAre(0ms, 100ms, 200ms, 250ms, 300ms));
}

TEST(ArrivalsTest, PartsTogetherSendTheScheduleOfOne) {
  for (const Spacing spacing : {Spacing::kEven, Spacing::kPoisson}) {
    const ArrivalPlan plan{.spacing = spacing, .seed = 5, .phases = {{100, 2s}, {900, 1s}}};
    std::vector<std::chrono::nanoseconds> together;
    for (size_t part = 0; part < 4; ++part) {
      const auto moments = All(plan, part, 4);
      together.insert(together.end(), moments.begin(), moments.end());
    }
    std::sort(together.begin(), together.end());
    EXPECT_EQ(together, All(plan));
  }
}

TEST(ArrivalsTest, PoissonGapsHaveTheRateAsMeanAndAsDeviation) {
  const auto moments = All({.seed = 11, .phases = {{1000, 20s}}});
  double sum = 0;
  double squares = 0;
  for (size_t i = 1; i < moments.size(); ++i) {
    const double gap = std::chrono::duration<double>(moments[i] - moments[i - 1]).count();
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(moments.size() - 1);
  const double mean = sum / n;
  // 20,000 gaps: the mean's own deviation is 0.7 %.
  EXPECT_NEAR(mean, 1e-3, 4e-5);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 1e-3, 6e-5);
}

TEST(ArrivalsTest, IsTheSameForASeedAndAnotherForAnother) {
  const ArrivalPlan plan{.seed = 3, .phases = {{50, 1s}}};
  ArrivalPlan other = plan;
  other.seed = 4;
  EXPECT_EQ(All(plan), All(plan));
  EXPECT_NE(All(plan), All(other));
}

TEST(ArrivalsTest, EndsWithThePlan) {
  const ArrivalPlan plan{.phases = {{200, 1s}, {400, 500ms}}};
  EXPECT_EQ(plan.TotalDuration(), 1500ms);
  EXPECT_LT(All(plan).back(), 1500ms);
  EXPECT_TRUE(All({}).empty());
}

}  // namespace
}  // namespace bouquet::bench
