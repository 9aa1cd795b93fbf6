#include "ivy/api/float_array.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/json.h"

namespace bouquet::ivy::api {
namespace {

std::string Render(const std::vector<float>& values) {
  std::string out;
  AppendFloatArray(values, out);
  return out;
}

TEST(FloatArrayTest, WritesTheShortestDecimals) {
  EXPECT_EQ(Render({0.1F, 1.0F, -0.5F, 16777216.0F}), "[0.1,1,-0.5,16777216]");
  EXPECT_EQ(Render({}), "[]");
}

TEST(FloatArrayTest, IsValidJsonThatReadsBackToTheSameBits) {
  std::mt19937 random(2);
  std::vector<float> values = {0.0F,
                               -0.0F,
                               std::numeric_limits<float>::denorm_min(),
                               std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest()};
  while (values.size() < 20'000) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) {
      values.push_back(value);
    }
  }
  const std::string text = Render(values);
  const Result<JsonDocument> document = JsonDocument::Parse(text, "floats");
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  const char* at = text.c_str() + 1;
  for (const float value : values) {
    float back = 0;
    const char* end = std::from_chars(at, text.c_str() + text.size(), back).ptr;
    ASSERT_EQ(std::bit_cast<uint32_t>(back), std::bit_cast<uint32_t>(value)) << value;
    at = end + 1;
  }
}

TEST(FloatArrayTest, TellsFiniteFromNot) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(AllFinite(std::vector<float>{}));
  EXPECT_TRUE(AllFinite(std::vector<float>{0.0F, std::numeric_limits<float>::max(), -1.0F}));
  EXPECT_FALSE(AllFinite(std::vector<float>{0.0F, infinity}));
  EXPECT_FALSE(AllFinite(std::vector<float>{-infinity, 0.0F}));
  EXPECT_FALSE(AllFinite(std::vector<float>{1.0F, std::nanf(""), 1.0F}));
}

}  // namespace
}  // namespace bouquet::ivy::api
