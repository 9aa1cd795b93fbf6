#include "rose/backend/cuda/attention/chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::rose::cuda {
namespace {

using ::testing::HasSubstr;

AttentionShape Shape(int32_t head_dim, AttentionMask mask = AttentionMask::kBidirectional,
                     int32_t window = 0) {
  return {.num_heads = 16, .num_kv_heads = 8, .head_dim = head_dim, .mask = mask, .window = window};
}

std::string Chosen(const AttentionShape& shape, const AttentionSizes& sizes,
                   AttentionFamily family = AttentionFamily::kAuto, bool fa3_built = true) {
  return NameOf(ChooseAttention(shape, sizes, family, fa3_built));
}

AttentionSizes Sequences(int32_t count, int32_t length) { return {count, count * length, length}; }

TEST(AttentionChooserTest, ReadsTheNamesOfTheFlag) {
  EXPECT_EQ(*ParseAttentionFamily(""), AttentionFamily::kAuto);
  EXPECT_EQ(*ParseAttentionFamily("auto"), AttentionFamily::kAuto);
  EXPECT_EQ(*ParseAttentionFamily("own"), AttentionFamily::kOwn);
  EXPECT_EQ(*ParseAttentionFamily("fa2"), AttentionFamily::kFa2);
  EXPECT_EQ(*ParseAttentionFamily("fa3"), AttentionFamily::kFa3);
}

TEST(AttentionChooserTest, ListsTheNamesWhenOneIsUnknown) {
  const auto family = ParseAttentionFamily("fa4");
  ASSERT_EQ(family.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(family.status().message(), HasSubstr("auto, own, fa2, fa3"));
  EXPECT_THAT(family.status().message(), HasSubstr("fa4"));
}

TEST(AttentionChooserTest, TakesOwnKernelForShortSequences) {
  for (const int32_t head_dim : {64, 128}) {
    for (const AttentionMask mask : {AttentionMask::kBidirectional, AttentionMask::kCausal}) {
      EXPECT_EQ(Chosen(Shape(head_dim, mask), Sequences(1, 16)), "own_16");
      EXPECT_EQ(Chosen(Shape(head_dim, mask), Sequences(1, 64)), "own_64");
      EXPECT_EQ(Chosen(Shape(head_dim, mask), Sequences(64, 32)), "own_32");
      EXPECT_EQ(Chosen(Shape(head_dim, mask), Sequences(256, 16)), "own_16");
    }
  }
}

TEST(AttentionChooserTest, TakesFa2BetweenShortAndLong) {
  EXPECT_EQ(Chosen(Shape(128), Sequences(1, 128)), "fa2_64");
  EXPECT_EQ(Chosen(Shape(128), Sequences(1, 512)), "fa2_64");
  EXPECT_EQ(Chosen(Shape(128), Sequences(32, 64)), "fa2_128");
  EXPECT_EQ(Chosen(Shape(64), Sequences(1, 1024)), "fa2_64");
  EXPECT_EQ(Chosen(Shape(64), Sequences(16, 128)), "fa2_128");
  EXPECT_EQ(Chosen(Shape(64, AttentionMask::kCausal), Sequences(25, 512)), "fa2_128");
}

TEST(AttentionChooserTest, TakesFa3ForLongSequencesOfItsHeadSizes) {
  EXPECT_EQ(Chosen(Shape(128), Sequences(8, 128)), "fa3_128");
  EXPECT_EQ(Chosen(Shape(128), Sequences(1, 4096)), "fa3_128");
  EXPECT_EQ(Chosen(Shape(128), Sequences(25, 512)), "fa3_128");
  EXPECT_EQ(Chosen(Shape(64), Sequences(25, 512)), "fa3_192");
}

TEST(AttentionChooserTest, GivesEachTileOfFewCausalSequencesItsOwnCta) {
  const AttentionShape causal = Shape(128, AttentionMask::kCausal);
  EXPECT_EQ(Chosen(causal, Sequences(1, 8192)), "fa3_128_per_tile");
  EXPECT_EQ(Chosen(causal, Sequences(5, 512)), "fa3_128_per_tile");
  EXPECT_EQ(Chosen(causal, Sequences(16, 128)), "fa3_128");
  EXPECT_EQ(Chosen(causal, Sequences(25, 512)), "fa3_128");
}

TEST(AttentionChooserTest, TakesFa2WhereFa3IsNotBuilt) {
  const auto sizes = Sequences(25, 512);
  EXPECT_EQ(Chosen(Shape(128), sizes, AttentionFamily::kAuto, false), "fa2_128");
  EXPECT_FALSE(IsServed(Shape(128), AttentionFamily::kFa3, false));
}

TEST(AttentionChooserTest, ServesSmallHeadsWithTheOwnKernelsOnly) {
  EXPECT_EQ(Chosen(Shape(32), Sequences(32, 128)), "own_64");
  EXPECT_EQ(Chosen(Shape(32, AttentionMask::kCausal, 5), Sequences(1, 5000)), "own_64");
  EXPECT_EQ(Chosen(Shape(12), Sequences(1, 5000)), "own_plain");
  EXPECT_EQ(Chosen(Shape(256), Sequences(1, 16)), "own_plain");
  EXPECT_FALSE(IsServed(Shape(32), AttentionFamily::kFa2, true));
  EXPECT_FALSE(IsServed(Shape(12), AttentionFamily::kFa3, true));
}

TEST(AttentionChooserTest, KeepsFa3FromWindows) {
  const AttentionShape windowed = Shape(128, AttentionMask::kBidirectional, 256);
  EXPECT_FALSE(IsServed(windowed, AttentionFamily::kFa3, true));
  EXPECT_TRUE(IsServed(windowed, AttentionFamily::kFa2, true));
  EXPECT_EQ(Chosen(windowed, Sequences(8, 4096)), "fa2_128");
  EXPECT_EQ(Chosen(Shape(64, AttentionMask::kCausal, 64), Sequences(8, 4096)), "own_64");
}

TEST(AttentionChooserTest, KeepsABiasByDistanceToTheOwnKernels) {
  for (const auto& [head_dim, name] :
       {std::pair(32, "own_64"), std::pair(64, "own_64"), std::pair(128, "own_64"),
        std::pair(12, "own_plain"), std::pair(80, "own_plain")}) {
    AttentionShape biased = Shape(head_dim);
    biased.relative_bias = true;
    EXPECT_EQ(Chosen(biased, Sequences(25, 512)), name);
    EXPECT_EQ(Chosen(biased, Sequences(1, 4096), AttentionFamily::kOwn), name);
    EXPECT_FALSE(IsServed(biased, AttentionFamily::kFa2, true));
    EXPECT_FALSE(IsServed(biased, AttentionFamily::kFa3, true));
  }
}

TEST(AttentionChooserTest, KeepsToAForcedFamilyForEveryStep) {
  for (const int32_t length : {1, 16, 128, 512, 4096}) {
    for (const int32_t count : {1, 8, 64}) {
      const auto sizes = Sequences(count, length);
      EXPECT_THAT(Chosen(Shape(128), sizes, AttentionFamily::kOwn), HasSubstr("own_"));
      EXPECT_THAT(Chosen(Shape(128), sizes, AttentionFamily::kFa2), HasSubstr("fa2_"));
      EXPECT_THAT(Chosen(Shape(128), sizes, AttentionFamily::kFa3), HasSubstr("fa3_"));
    }
  }
}

TEST(AttentionChooserTest, RefusesShapesThatNoKernelHas) {
  EXPECT_FALSE(IsServed(Shape(257), AttentionFamily::kAuto, true));
  EXPECT_FALSE(IsServed(Shape(0), AttentionFamily::kAuto, true));
  AttentionShape uneven = Shape(64);
  uneven.num_kv_heads = 5;
  EXPECT_FALSE(IsServed(uneven, AttentionFamily::kAuto, true));
}

}  // namespace
}  // namespace bouquet::rose::cuda
