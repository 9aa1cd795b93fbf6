#include "tulip/step_cost.h"

#include <vector>

#include <gtest/gtest.h>

namespace bouquet::tulip {
namespace {

TEST(StepCostTest, InterpolatesBetweenMeasuredPoints) {
  const std::vector<StepCost::Point> points = {{16, 1000}, {64, 4000}};
  const StepCost cost(points);
  EXPECT_DOUBLE_EQ(cost.StepUs(16), 1000);
  EXPECT_DOUBLE_EQ(cost.StepUs(40), 2500);
  EXPECT_DOUBLE_EQ(cost.StepUs(64), 4000);
}

TEST(StepCostTest, IsFlatBelowTheFirstPointAndProportionalAboveTheLast) {
  const std::vector<StepCost::Point> points = {{16, 1000}, {64, 4000}};
  const StepCost cost(points);
  EXPECT_DOUBLE_EQ(cost.StepUs(1), 1000);
  EXPECT_DOUBLE_EQ(cost.StepUs(128), 8000);
  EXPECT_DOUBLE_EQ(cost.TokensPerSecond(128), 16'000);
}

TEST(StepCostTest, HasAnAnswerBeforeAnythingWasMeasured) {
  const StepCost cost({});
  EXPECT_GT(cost.StepUs(1), 0);
  EXPECT_GT(cost.TokensPerSecond(512), 0);
  EXPECT_EQ(cost.DefaultStepTokens(4096), 256);
}

TEST(StepCostTest, FollowsATrafficChangeAndHardlyNoticesOneDisturbedStep) {
  const std::vector<StepCost::Point> points = {{512, 10'000}};
  StepCost cost(points);
  cost.Observe(512, 50'000);
  EXPECT_LT(cost.StepUs(512), 16'000);
  for (int i = 0; i < 40; ++i) {
    cost.Observe(512, 20'000);
  }
  EXPECT_NEAR(cost.StepUs(512), 20'000, 200);
}

TEST(StepCostTest, ChoosesTheSmallestStepNearTheBestThroughput) {
  // tokens per ms:                              16,          32,           39,           40
  const std::vector<StepCost::Point> points = {
      {256, 16'000}, {512, 16'000}, {1024, 26'256}, {2048, 51'200}};
  EXPECT_EQ(StepCost(points).DefaultStepTokens(8192), 1024);
  EXPECT_EQ(StepCost(points).DefaultStepTokens(600), 600);
}

TEST(StepCostTest, DoesNotChooseStepsSoSmallThatHandingOverCounts) {
  const std::vector<StepCost::Point> points = {{16, 1600}, {64, 6400}, {256, 25'600}};
  EXPECT_EQ(StepCost(points).DefaultStepTokens(1024), 256);
}

TEST(StepCostTest, TakesTheSmallestAndTheLargestStep) {
  StepCost cost({});
  cost.Observe(1, 10);
  cost.Observe(2'000'000'000, 1e9);
  EXPECT_DOUBLE_EQ(cost.StepUs(1), 10);
  EXPECT_DOUBLE_EQ(cost.StepUs(2'000'000'000), 1e9);
}

}  // namespace
}  // namespace bouquet::tulip
