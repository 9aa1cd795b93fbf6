#include "ivy/encode/splitter.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::ivy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitterTest, MakesNoChunkOfNothing) { EXPECT_THAT(SplitByTokens({}, 10), IsEmpty()); }

TEST(SplitterTest, KeepsASmallRequestWhole) {
  EXPECT_THAT(SplitByTokens(std::vector<int32_t>{3, 4, 3}, 10), ElementsAre(ChunkRange{0, 3, 10}));
}

TEST(SplitterTest, GivesALongInputAChunkOfItsOwn) {
  EXPECT_THAT(SplitByTokens(std::vector<int32_t>{3, 40, 3, 4}, 10),
              ElementsAre(ChunkRange{0, 1, 3}, ChunkRange{1, 1, 40}, ChunkRange{2, 2, 7}));
}

TEST(SplitterTest, PutsEveryInputInOneChunkInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> counts(random() % 50);
    for (int32_t& count : counts) {
      count = static_cast<int32_t>(1 + random() % 40);
    }
    const auto limit = static_cast<int64_t>(1 + random() % 60);
    size_t next = 0;
    for (const ChunkRange& range : SplitByTokens(counts, limit)) {
      EXPECT_EQ(range.first, next);
      ASSERT_GT(range.count, 0U);
      int64_t total = 0;
      for (size_t i = 0; i < range.count; ++i) {
        total += counts[next++];
      }
      EXPECT_EQ(range.num_tokens, total);
      EXPECT_TRUE(total <= limit || range.count == 1);
    }
    EXPECT_EQ(next, counts.size());
  }
}

}  // namespace
}  // namespace bouquet::ivy
