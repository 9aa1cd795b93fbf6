#include "rose/step_grid.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace bouquet::rose {
namespace {

StepSizes Pad(int32_t tokens, int32_t sequences, int32_t longest) {
  return PadStep({.num_tokens = tokens,
                  .num_sequences = sequences,
                  .num_rows = sequences,
                  .longest_sequence = longest});
}

TEST(StepGridTest, HoldsEveryStepAndWastesLittleOfALargeOne) {
  for (int32_t tokens = 1; tokens <= 70'000; ++tokens) {
    const int32_t padded = Pad(tokens, 1, tokens).num_tokens;
    ASSERT_GE(padded, tokens);
    ASSERT_EQ(padded % 16, 0);
    ASSERT_LT(padded - tokens, tokens <= 1024 ? 64 : 256) << tokens;
  }
}

TEST(StepGridTest, LeavesAPaddedStepAsItIs) {
  for (const int32_t tokens : {1, 16, 17, 33, 64, 65, 1000, 1024, 1025, 5000}) {
    const StepSizes once = Pad(tokens, 3, tokens);
    EXPECT_EQ(PadStep(once), once) << tokens;
  }
}

TEST(StepGridTest, HasFewSizes) {
  EXPECT_EQ(Pad(1, 1, 1).num_tokens, 16);
  EXPECT_EQ(Pad(17, 1, 1).num_tokens, 32);
  EXPECT_EQ(Pad(33, 1, 1).num_tokens, 64);
  EXPECT_EQ(Pad(1000, 1, 1).num_tokens, 1024);
  EXPECT_EQ(Pad(1025, 1, 1).num_tokens, 1280);
  EXPECT_EQ(Pad(4000, 5, 1).num_sequences, 8);
  EXPECT_EQ(Pad(4000, 5, 1).longest_sequence, 16);
  EXPECT_EQ(Pad(4000, 5, 700).longest_sequence, 1024);
  EXPECT_EQ(Pad(33, 1, 33).longest_sequence, 64);
}

TEST(StepGridTest, PadsRowsLikeSequencesAndApartFromThemOnlyWhereThereAreSpans) {
  for (int32_t sequences = 1; sequences <= 600; ++sequences) {
    const StepSizes padded = Pad(1000, sequences, 100);
    ASSERT_EQ(padded.num_rows, padded.num_sequences);
  }
  StepSizes sizes{.num_tokens = 1000, .num_sequences = 3, .num_rows = 33, .longest_sequence = 900};
  EXPECT_EQ(PadStep(sizes).num_sequences, 4);
  EXPECT_EQ(PadStep(sizes).num_rows, 64);
  sizes.num_rows = 4;  // padded rows of padded sequences: the size that three sequences have alone
  EXPECT_EQ(PadStep(sizes), Pad(1000, 3, 900));
}

TEST(StepGridTest, ListsItsNumbersOfTokens) {
  EXPECT_EQ(PaddedTokenCounts(1), std::vector<int64_t>{16});
  EXPECT_EQ(PaddedTokenCounts(100), (std::vector<int64_t>{16, 32, 64, 128}));
  const std::vector<int64_t> counts = PaddedTokenCounts(8192);
  EXPECT_EQ(counts.size(), 46U);
  for (const int64_t count : counts) {
    EXPECT_EQ(Pad(static_cast<int32_t>(count), 1, 1).num_tokens, count);
  }
  EXPECT_EQ(counts.back(), 8192);
}

TEST(StepGridTest, TheGridOfAStartHoldsPaddedSizesOnce) {
  for (const auto& [max_tokens, max_sequences, max_length] : std::vector<std::array<int32_t, 3>>{
           {32'768, 512, 32'768}, {4096, 512, 512}, {100, 4, 100}}) {
    const std::vector<StepSizes> grid = StartupGrid(max_tokens, max_sequences, max_length);
    EXPECT_FALSE(grid.empty());
    EXPECT_LE(grid.size(), 128U);
    std::set<StepSizes> padded;
    for (const StepSizes& sizes : grid) {
      EXPECT_LE(sizes.num_tokens, max_tokens);
      EXPECT_LE(sizes.num_sequences, max_sequences);
      EXPECT_LE(sizes.longest_sequence, max_length);
      EXPECT_TRUE(padded.insert(PadStep(sizes)).second) << sizes.num_tokens;
    }
  }
}

TEST(StepGridTest, TellsStepsWithTokenTypesApart) {
  StepSizes sizes{.num_tokens = 8, .num_sequences = 1, .num_rows = 1, .longest_sequence = 8};
  const StepSizes without = PadStep(sizes);
  sizes.has_token_types = true;
  EXPECT_NE(PadStep(sizes), without);
}

}  // namespace
}  // namespace bouquet::rose
