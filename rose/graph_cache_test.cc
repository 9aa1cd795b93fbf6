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
  Cache cache(4, false);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kRunEagerly);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kCapture);
  cache.Insert(Sizes(16), 7);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  EXPECT_EQ(cache.Find(Sizes(16)), 7);
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kRunEagerly);
  EXPECT_EQ(cache.counts().eager, 2);
  EXPECT_EQ(cache.counts().captures, 1);
  EXPECT_EQ(cache.counts().replays, 1);
}

TEST(GraphCacheTest, CapturesAtOnceIfAsked) {
  Cache cache(4, true);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kCapture);
}

TEST(GraphCacheTest, EvictsWhatWasNotUsedForLongest) {
  Cache cache(2, true);
  for (const int32_t tokens : {16, 32}) {
    ASSERT_EQ(cache.Next(Sizes(tokens)), Action::kCapture);
    cache.Insert(Sizes(tokens), tokens);
  }
  ASSERT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  ASSERT_EQ(cache.Next(Sizes(64)), Action::kCapture);  // 32 goes
  cache.Insert(Sizes(64), 64);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.counts().evictions, 1);
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kReplay);
  EXPECT_EQ(cache.Next(Sizes(32)), Action::kCapture);
}

TEST(GraphCacheTest, TriesACaptureThatFailedNoSecondTime) {
  Cache cache(2, true);
  ASSERT_EQ(cache.Next(Sizes(16)), Action::kCapture);
  cache.SetUncapturable(Sizes(16));
  EXPECT_EQ(cache.Next(Sizes(16)), Action::kRunEagerly);
  EXPECT_EQ(cache.counts().eager, 2);
  EXPECT_EQ(cache.counts().captures, 0);
}

}  // namespace
}  // namespace bouquet::rose
