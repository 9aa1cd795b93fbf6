#include "rose/graph_cache.h"

#include <gtest/gtest.h>

namespace bouquet::rose {
namespace {

using Cache = GraphCache<int>;
using Action = Cache::Action;

StepSizes Sizes(int32_t tokens) {
  return {.num_tokens = tokens, .num_sequences = 1, .num_rows = 1, .longest_sequence = tokens};
}

TEST(GraphCacheTest, RunsEagerlyThenCapturesThenReplays) {
  Cache cache(4, 100, false);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kRunEagerly);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kCapture);
  ASSERT_TRUE(cache.Insert(Sizes(16), 7, 1));
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  EXPECT_EQ(cache.Find(Sizes(16)), 7);
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kRunEagerly);
  EXPECT_EQ(cache.counts().eager, 2);
  EXPECT_EQ(cache.counts().captures, 1);
  EXPECT_EQ(cache.counts().replays, 1);
}

TEST(GraphCacheTest, CapturesAtOnceIfAsked) {
  Cache cache(4, 100, true);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kCapture);
}

TEST(GraphCacheTest, EvictsWhatWasNotUsedForLongest) {
  Cache cache(2, 100, true);
  for (const int32_t tokens : {16, 32}) {
    ASSERT_EQ(cache.Next(Sizes(tokens)), Action::kCapture);
    ASSERT_TRUE(cache.Insert(Sizes(tokens), tokens, 1));
  }
  ASSERT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  ASSERT_EQ(cache.Next(Sizes(64)), Action::kCapture);  // 32 goes
  ASSERT_TRUE(cache.Insert(Sizes(64), 64, 1));
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.counts().evictions, 1);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kCapture);
}

TEST(GraphCacheTest, GraphsTakeNoMoreBytesThanAllowed) {
  Cache cache(8, 100, true);
  for (const int32_t tokens : {16, 32, 64}) {
    ASSERT_EQ(cache.Next(Sizes(tokens)), Action::kCapture);
    ASSERT_TRUE(cache.Insert(Sizes(tokens), tokens, 30));
  }
  ASSERT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  ASSERT_EQ(cache.Next(Sizes(128)), Action::kCapture);
  ASSERT_TRUE(cache.Insert(Sizes(128), 128, 70));  // 32 and 64 go
  EXPECT_EQ(cache.graph_bytes(), 100);
  EXPECT_EQ(cache.counts().evictions, 2);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  EXPECT_EQ(cache.Find(Sizes(16)), 16);
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kCapture);
  ASSERT_TRUE(cache.Insert(Sizes(32), 33, 30));  // 128 goes
  EXPECT_EQ(cache.graph_bytes(), 60);
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kReplay);
  EXPECT_EQ(cache.Find(Sizes(32)), 33);
}

TEST(GraphCacheTest, AGraphThatAloneIsTooLargeRunsEagerlyForGood) {
  Cache cache(8, 100, true);
  ASSERT_EQ(cache.Next(Sizes(16)), Action::kCapture);
  ASSERT_TRUE(cache.Insert(Sizes(16), 16, 60));
  ASSERT_EQ(cache.Next(Sizes(32)), Action::kCapture);
  EXPECT_FALSE(cache.Insert(Sizes(32), 32, 101));
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kRunEagerly);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  EXPECT_EQ(cache.counts().captures, 1);
}

TEST(GraphCacheTest, ForgottenSizesGiveTheirBytesBack) {
  Cache cache(2, 100, true);
  for (const int32_t tokens : {16, 32, 64, 128, 256}) {
    ASSERT_EQ(cache.Next(Sizes(tokens)), Action::kCapture);
    ASSERT_TRUE(cache.Insert(Sizes(tokens), tokens, 50));
  }
  EXPECT_EQ(cache.graph_bytes(), 100);
  EXPECT_EQ(cache.counts().evictions, 3);
}

TEST(GraphCacheTest, TriesACaptureThatFailedNoSecondTime) {
  Cache cache(2, 100, true);
  ASSERT_EQ(cache.Next(Sizes(16)), Action::kCapture);
  cache.SetUncapturable(Sizes(16));
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kRunEagerly);
  EXPECT_EQ(cache.counts().eager, 2);
  EXPECT_EQ(cache.counts().captures, 0);
}

}  // namespace
}  // namespace bouquet::rose
