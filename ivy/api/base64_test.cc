#include "ivy/api/base64.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace bouquet::ivy::api {
namespace {

std::string Encode(std::string_view text) {
  std::string out;
  AppendBase64(std::as_bytes(std::span(text)), out);
  return out;
}

/// A plain decoder, one character at a time.
std::string Decode(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    if (c == '=') {
      break;
    }
    const uint32_t value = c >= 'A' && c <= 'Z'   ? c - 'A'
                           : c >= 'a' && c <= 'z' ? c - 'a' + 26
                           : c >= '0' && c <= '9' ? c - '0' + 52
                           : c == '+'             ? 62
                                                  : 63;
    bits = (bits << 6) | value;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out.push_back(static_cast<char>(bits >> num_bits));
    }
  }
  return out;
}

TEST(Base64Test, EncodesTheExamplesOfTheStandard) {
  EXPECT_EQ(Encode(""), "");
  EXPECT_EQ(Encode("f"), "Zg==");
  EXPECT_EQ(Encode("fo"), "Zm8=");
  EXPECT_EQ(Encode("foo"), "Zm9v");
  EXPECT_EQ(Encode("foob"), "Zm9vYg==");
  EXPECT_EQ(Encode("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Encode("\xFB\xFF\xFE"), "+//+");
}

TEST(Base64Test, DecodesBackForEveryLengthOfRandomBytes) {
  std::mt19937 random(1);
  for (size_t length = 0; length < 200; ++length) {
    std::string data(length, '\0');
    for (char& byte : data) {
      byte = static_cast<char>(random());
    }
    EXPECT_EQ(Decode(Encode(data)), data) << "length " << length;
  }
}

TEST(Base64Test, AppendsToWhatIsThere) {
  std::string out = "data:";
  AppendBase64(std::as_bytes(std::span(std::string_view("foob"))), out);
  EXPECT_EQ(out, "data:Zm9vYg==");
}

TEST(Base64Test, WritesFloatsInLittleEndianOrder) {
  std::string out;
  AppendBase64Floats(std::vector<float>{1.0F, -2.5F}, out);
  // 1.0 is 0x3F800000, -2.5 is 0xC0200000.
  EXPECT_EQ(Decode(out), std::string("\x00\x00\x80\x3F\x00\x00\x20\xC0", 8));
}

TEST(Base64Test, KeepsEveryBitOfUnusualFloats) {
  const std::vector<float> values = {0.0F, -0.0F, std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::max(), -1e-38F};
  std::string out;
  AppendBase64Floats(values, out);
  const std::string bytes = Decode(out);
  ASSERT_EQ(bytes.size(), values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), bytes.size()), 0);
}

}  // namespace
}  // namespace bouquet::ivy::api
