#include "bench/load/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

namespace bouquet::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReferenceTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = ::testing::TempDir() + "reference_test_" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  /// A file as numpy.save writes it.
  static std::string Npy(const std::string& header, const std::vector<float>& values) {
    std::string content("\x93NUMPY\x01\x00", 8);
    const auto size = static_cast<uint16_t>(header.size());
    content.append(reinterpret_cast<const char*>(&size), 2);
    content += header;
    content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return content;
  }
};

TEST_F(ReferenceTest, ReadsNpy) {
  const auto rows = ReadReference(Write(
      "a.npy",
      Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", {1, 2, 3, 4, 5, 6})));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->num_rows(), 2U);
  EXPECT_THAT(rows->Row(1), ElementsAre(4, 5, 6));
}

TEST_F(ReferenceTest, ReadsJsonLines) {
  const auto rows = ReadReference(
      Write("a.jsonl", "{\"index\":0,\"embedding\":[1,2]}\n\n{\"index\":1,\"embedding\":[3,4.5]}"));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->num_rows(), 2U);
  EXPECT_THAT(rows->Row(1), ElementsAre(3, 4.5));
}

TEST_F(ReferenceTest, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(ReadReference("no-such.npy").code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadReference("vectors.txt").code(), StatusCode::kInvalidArgument);
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  const std::pair<std::string, std::string> cases[] = {
      {"b.npy", "hello"},
      {"c.npy", Npy(good, {1, 2, 3})},
      {"d.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n", {1})},
      {"e.npy", Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", {1})},
      {"f.npy", Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", {1})},
      {"g.npy", Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 4)}\n", {1})},
      {"h.npy", std::string("\x93NUMPY\x01\x00\xff\xff{", 11)},
      {"i.jsonl", "{\"embedding\":[1]}\n{\"embedding\":[1,2]}\n"},
      {"j.jsonl", "{\"embedding\":[]}\n"},
      {"k.jsonl", "{\"embedding\":[1e99]}\n"},
      {"l.jsonl", "not json\n"},
      {"m.jsonl", ""},
  };
  for (const auto& [name, content] : cases) {
    const std::string path = Write(name, content);
    const auto rows = ReadReference(path);
    ASSERT_FALSE(rows.ok()) << name;
    EXPECT_THAT(rows.status().message(), HasSubstr(path)) << name;
  }
}

TEST(CosineDistanceTest, IsOneMinusTheCosine) {
  const std::vector<float> x{1, 0};
  const std::vector<float> y{0, 2};
  const std::vector<float> z{3, 3};
  EXPECT_DOUBLE_EQ(CosineDistance(x, x), 0);
  EXPECT_DOUBLE_EQ(CosineDistance(x, y), 1);
  EXPECT_NEAR(CosineDistance(x, z), 1 - std::sqrt(0.5), 1e-12);
}

TEST(CosineDistanceTest, AgreesWithNothingThatIsNoVectorOfThatLength) {
  const std::vector<float> x{1, 0};
  for (const std::vector<float>& other :
       {std::vector<float>{}, std::vector<float>{1}, std::vector<float>{0, 0},
        std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 1}}) {
    EXPECT_TRUE(std::isinf(CosineDistance(x, other)));
  }
}

}  // namespace
}  // namespace bouquet::bench
