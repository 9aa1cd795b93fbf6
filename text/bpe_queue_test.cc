#include "text/bpe_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace bouquet::text {
namespace {

using Merges = std::vector<std::pair<uint32_t, int32_t>>;

Merges PopAll(BpeQueue& queue) {
  Merges popped;
  while (const std::optional<RankedMerge> merge = queue.Pop()) {
    popped.emplace_back(merge->rank, merge->left);
  }
  return popped;
}

TEST(BpeQueueTest, GivesTheLowestRankAndTheLeftmostFirst) {
  BpeQueue queue;
  queue.Begin(200);
  for (const auto& [rank, left] :
       Merges{{7, 3}, {199, 0}, {7, 1}, {0, 9}, {64, 5}, {7, 2}, {63, 4}}) {
    queue.Push({rank, left});
  }
  EXPECT_EQ(PopAll(queue), (Merges{{0, 9}, {7, 1}, {7, 2}, {7, 3}, {63, 4}, {64, 5}, {199, 0}}));
}

TEST(BpeQueueTest, LetsThroughWhatRanksLowerThanTheTurn) {
  BpeQueue queue;
  queue.Begin(100);
  queue.Push({50, 1});
  queue.Push({50, 8});
  EXPECT_EQ(queue.Pop()->left, 1);
  queue.Push({50, 4});
  queue.Push({3, 9});
  queue.Push({60, 0});
  EXPECT_EQ(PopAll(queue), (Merges{{3, 9}, {50, 4}, {50, 8}, {60, 0}}));
}

TEST(BpeQueueTest, IsAPriorityQueueWhateverComes) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t limit) {
    return std::uniform_int_distribution<uint32_t>(0, limit - 1)(random);
  };
  BpeQueue queue;
  for (int round = 0; round < 300; ++round) {
    const uint32_t num_ranks = 1 + below(300);
    const uint32_t step = 1 + below(5);
    std::multiset<std::pair<uint32_t, int32_t>> expected;
    queue.Begin(num_ranks);
    uint32_t lowest = 0;
    for (int i = 0; i < 400; ++i) {
      const bool pushes = i < 200 && below(3) != 0;
      if (pushes) {
        // Mostly behind what was popped last, as learned merges do.
        const uint32_t floor = below(8) == 0 ? 0 : lowest / step * step;
        const uint32_t rank = floor + below(num_ranks - floor);
        const auto left = static_cast<int32_t>(below(50));
        queue.Push({rank, left});
        expected.emplace(rank, left);
        continue;
      }
      const std::optional<RankedMerge> popped = queue.Pop();
      ASSERT_EQ(popped.has_value(), !expected.empty());
      if (popped) {
        ASSERT_EQ((std::pair{popped->rank, popped->left}), *expected.begin());
        expected.erase(expected.begin());
        lowest = popped->rank;
      }
    }
    const Merges rest = PopAll(queue);
    ASSERT_EQ(rest, Merges(expected.begin(), expected.end()));
  }
}

TEST(BpeQueueTest, GivesItsMemoryBack) {
  BpeQueue queue;
  queue.Begin(10);
  for (int32_t i = 0; i < 100'000; ++i) {
    queue.Push({3, i});
  }
  EXPECT_EQ(PopAll(queue).size(), 100'000U);
  EXPECT_GE(queue.capacity_bytes(), 100'000U * sizeof(int32_t));
  queue.Release();
  EXPECT_EQ(queue.capacity_bytes(), 0U);
}

}  // namespace
}  // namespace bouquet::text
