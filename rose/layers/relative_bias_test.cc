#include "rose/layers/relative_bias.h"

#include <gtest/gtest.h>

#include "rose/backend/factory.h"

namespace bouquet::rose {
namespace {

// From the least distance that falls into each bucket of one side, as the reference library has it.
TEST(RelativeBiasTest, NumbersBucketsFinelyNearAndCoarselyFarOnBothSides) {
  const int32_t begins[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  for (int32_t distance = 0; distance < 1000; ++distance) {
    int32_t expected = 0;
    while (expected < 15 && begins[expected + 1] <= distance) {
      ++expected;
    }
    EXPECT_EQ(DistanceBucket(-distance), expected) << distance;
    EXPECT_EQ(DistanceBucket(distance), distance == 0 ? 0 : 16 + expected) << distance;
  }
  EXPECT_EQ(DistanceBucket(INT32_MAX), 31);
  EXPECT_EQ(DistanceBucket(INT32_MIN), 15);
}

TEST(RelativeBiasTest, ExpandsToOneColumnADistanceThatStaysAsItIsBehindTheLast) {
  const Result<std::unique_ptr<Backend>> backend = CreateBackend({});
  ASSERT_TRUE(backend.ok()) << backend.status().ToString();
  std::vector<float> buckets;  // [32, 2]
  for (int bucket = 0; bucket < 32; ++bucket) {
    buckets.push_back(static_cast<float>(bucket));
    buckets.push_back(static_cast<float>(bucket) - 100);
  }
  const Result<Tensor> tensor =
      ExpandRelativeBias({buckets.data(), Dtype::kFloat32, 32, 2}, **backend);
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  const RelativeBias bias{tensor->view()};
  EXPECT_EQ(bias.max_distance(), 128);
  ASSERT_EQ(bias.table.rows, 2);
  ASSERT_EQ(bias.table.cols, 2 * (128 + RelativeBias::kMargin) + 1);
  std::vector<float> table(static_cast<size_t>(2 * bias.table.cols));
  ASSERT_TRUE((*backend)->CopyOut(bias.table, table.data()).ok());
  for (int32_t head = 0; head < 2; ++head) {
    for (int32_t distance = -bias.centre(); distance <= bias.centre(); ++distance) {
      const auto at = static_cast<size_t>(head * bias.table.cols + bias.centre() + distance);
      EXPECT_EQ(table[at], static_cast<float>(DistanceBucket(distance) - 100 * head)) << distance;
    }
  }
}

}  // namespace
}  // namespace bouquet::rose
