// Worlds of a few hundred seeds (world.h). `./dev simulate` runs one of them again, or many more.
#include "tests/simulation/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace bouquet::simulation {
namespace {

constexpr uint64_t kNumSeeds = 300;
constexpr uint64_t kSeedsPerTest = 50;

class SimulationTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimulationTest, KeepsEveryPromise) {
  ASSERT_TRUE(StartLogging("off", "text").ok());
  int64_t num_ok = 0;
  for (uint64_t seed = GetParam(); seed < GetParam() + kSeedsPerTest; ++seed) {
    const Outcome outcome = Simulate(seed, /*print=*/false);
    num_ok += outcome.num_ok;
    ASSERT_TRUE(outcome.violations.empty())
        << fmt::format("{}\nseed {}: {}\nagain: {}\n", fmt::join(outcome.last_lines, "\n"), seed,
                       outcome.violations.front(), ReplayCommand(seed));
  }
  EXPECT_GT(num_ok, 1000);  // the worlds do work, and not only fail as they may
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationTest,
                         ::testing::Range(uint64_t{1}, kNumSeeds + 1, kSeedsPerTest));

TEST(SimulationDeterminismTest, SameSeedGivesTheSameEvents) {
  ASSERT_TRUE(StartLogging("off", "text").ok());
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcome first = Simulate(seed, /*print=*/false);
    // Memory is laid out otherwise.
    const std::vector<std::string> in_the_way(seed * 100, "in the way");
    const Outcome second = Simulate(seed, /*print=*/false);
    EXPECT_EQ(first.log_hash, second.log_hash) << ReplayCommand(seed);
    EXPECT_EQ(first.num_lines, second.num_lines);
    EXPECT_NE(first.log_hash, Simulate(seed + 1, /*print=*/false).log_hash);
  }
}

}  // namespace
}  // namespace bouquet::simulation
