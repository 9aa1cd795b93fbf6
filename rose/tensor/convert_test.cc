#include "rose/tensor/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace bouquet::rose {
namespace {

template <class To, class From>
To Convert(From value, Dtype from, Dtype to) {
  To result;
  ConvertElements(&value, from, &result, to, 1);
  return result;
}

uint16_t ToHalf(float x) { return Convert<uint16_t>(x, Dtype::kFloat32, Dtype::kFloat16); }
float FromHalf(uint16_t x) { return Convert<float>(x, Dtype::kFloat16, Dtype::kFloat32); }
uint16_t ToBf16(float x) { return Convert<uint16_t>(x, Dtype::kFloat32, Dtype::kBfloat16); }
float FromBf16(uint16_t x) { return Convert<float>(x, Dtype::kBfloat16, Dtype::kFloat32); }

TEST(ConvertTest, EveryHalfHasItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 0x1F);
    const int mantissa = static_cast<int>(bits & 0x3FF);
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    expected = (bits & 0x8000) != 0 ? -expected : expected;
    const float value = FromHalf(static_cast<uint16_t>(bits));
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), mantissa != 0);
      EXPECT_EQ(std::isinf(value), mantissa == 0);
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    }
    if (!std::isnan(value)) {
      ASSERT_EQ(ToHalf(value), bits);
    }
  }
}

TEST(ConvertTest, HalfRoundsToNearestAndTiesToEven) {
  for (uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = FromHalf(bits);
    const float high = FromHalf(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact in float32
    ASSERT_EQ(ToHalf(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(ToHalf(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(ToHalf(std::nextafter(middle, 1e6F)), bits + 1);
  }
  EXPECT_EQ(ToHalf(65519.9F), 0x7BFF);
  EXPECT_EQ(ToHalf(65520.0F), 0x7C00);
  EXPECT_EQ(ToHalf(-1e30F), 0xFC00);
  EXPECT_TRUE(std::isnan(FromHalf(ToHalf(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(ConvertTest, Bf16RoundsToNearestAndTiesToEven) {
  for (const float value : {1.0F, -3.140625F, 1e-38F, 3e38F}) {
    EXPECT_NEAR(FromBf16(ToBf16(value)), value, std::abs(value) * 0x1p-8);
  }
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // tie, even below
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x3F818000U)), 0x3F82);  // tie, even above
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::infinity()), 0x7F80);
  // A NaN whose upper half alone would read as infinity.
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(std::bit_cast<float>(0x7F800001U)))));
}

TEST(ConvertTest, SixteenBitFormatsConvertToEachOther) {
  EXPECT_EQ(Convert<uint16_t>(uint16_t{0x3C00}, Dtype::kFloat16, Dtype::kBfloat16), 0x3F80);
  EXPECT_EQ(Convert<uint16_t>(uint16_t{0x3F80}, Dtype::kBfloat16, Dtype::kFloat16), 0x3C00);
}

TEST(ConvertTest, SourceMayHaveAnyAlignment) {
  const float values[] = {1.5F, -2.0F};
  std::vector<std::byte> bytes(sizeof values + 1);
  std::memcpy(bytes.data() + 1, values, sizeof values);
  uint16_t out[2];
  ConvertElements(bytes.data() + 1, Dtype::kFloat32, out, Dtype::kBfloat16, 2);
  EXPECT_EQ(out[0], 0x3FC0);
  EXPECT_EQ(out[1], 0xC000);
}

TEST(ConvertTest, KnowsWhatItCannotConvert) {
  EXPECT_TRUE(CanConvert(Dtype::kInt64, Dtype::kInt64));
  EXPECT_FALSE(CanConvert(Dtype::kInt64, Dtype::kFloat32));
  EXPECT_FALSE(CanConvert(Dtype::kFloat32, Dtype::kUint8));
}

}  // namespace
}  // namespace bouquet::rose
