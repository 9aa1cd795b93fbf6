#include "bench/load/row_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

std::vector<std::string> Names(const std::vector<RowPlan>& rows) {
  std::vector<std::string> names;
  for (const RowPlan& row : rows) {
    names.push_back(row.name);
  }
  return names;
}

TEST(RowPlanTest, MakesTheFourSuites) {
  const RowDefaults defaults{.duration = 1s};
  EXPECT_THAT(Names(LatencyRows({8, 16}, defaults)), ElementsAre("1 x 8 tokens", "1 x 16 tokens"));
  EXPECT_THAT(Names(ScoringRows({5, 25}, 512, defaults)),
              ElementsAre("5 x 512 tokens", "25 x 512 tokens"));
  const std::vector<RowPlan> throughput = ThroughputRows({512}, 100, defaults);
  EXPECT_THAT(Names(throughput), ElementsAre("100 x 512 tokens, 4 clients"));
  EXPECT_EQ(throughput[0].processes, 4);
  EXPECT_EQ(throughput[0].batch, 100);
  EXPECT_EQ(throughput[0].in_flight, 1);
  const std::vector<RowPlan> concurrency = ConcurrencyRows({1, 16}, 512, defaults);
  EXPECT_THAT(Names(concurrency),
              ElementsAre("1 x 512 tokens, 1 in flight", "1 x 512 tokens, 16 in flight"));
  EXPECT_EQ(concurrency[1].in_flight, 16);
}

TEST(RowPlanTest, HasOneRowForTextsWhoseLengthNobodyKnows) {
  const std::vector<RowPlan> rows = LatencyRows({8, 16}, {.texts = true, .duration = 1s});
  EXPECT_THAT(Names(rows), ElementsAre("1 text"));
  EXPECT_EQ(rows[0].tokens, 0);
}

TEST(RowPlanTest, PutsABurstBetweenTwoStretchesOfTheBaseRate) {
  const RowPlan row = OpenLoadRow({.per_second = 50,
                                   .burst_per_second = 400,
                                   .burst_duration = 2s,
                                   .tokens = 16,
                                   .max_in_flight = 10},
                                  {.duration = 5s});
  EXPECT_EQ(row.name, "1 x 16 tokens, 50/s, burst 400/s for 2 s");
  ASSERT_EQ(row.arrivals->phases.size(), 3U);
  EXPECT_EQ(row.arrivals->phases[1].per_second, 400);
  EXPECT_EQ(row.burst->start, 5s);
  EXPECT_EQ(row.burst->end(), 7s);
  EXPECT_EQ(row.duration, 12s);
  EXPECT_FALSE(OpenLoadRow({.per_second = 50}, {.duration = 5s}).burst.has_value());
}

}  // namespace
}  // namespace bouquet::bench
