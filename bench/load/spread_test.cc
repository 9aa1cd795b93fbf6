#include "bench/load/spread.h"

#include <gtest/gtest.h>

namespace bouquet::bench {
namespace {

TEST(SpreadTest, TakesTheMiddleOfAnOddNumberAndTheMeanOfTheMiddleTwoOfAnEven) {
  const Spread odd = SpreadOf({3, 1, 10});
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.min, 1);
  EXPECT_DOUBLE_EQ(odd.max, 10);
  EXPECT_DOUBLE_EQ(SpreadOf({4, 1, 2, 10}).median, 3);
  EXPECT_DOUBLE_EQ(SpreadOf({7}).median, 7);
}

}  // namespace
}  // namespace bouquet::bench
