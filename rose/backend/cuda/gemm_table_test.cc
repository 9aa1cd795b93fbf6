#include "rose/backend/cuda/gemm_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rose/backend/cuda/gemm_table_h200.h"
#include "testing/test_data.h"

namespace bouquet::rose::cuda {
namespace {

using ::testing::HasSubstr;

constexpr GemmShape kShape{.rows = 64,
                           .out_features = 4096,
                           .in_features = 1024,
                           .x_stride = 1024,
                           .weight_stride = 1024,
                           .out_stride = 4096,
                           .has_bias = true,
                           .adds_residual = false};

GemmTable::Entry EntryOf(int value) {
  GemmTable::Entry entry;
  entry.algorithm.fill(static_cast<std::byte>(value));
  entry.microseconds = 12.5;
  return entry;
}

GemmTable H200() { return {"NVIDIA H200", 130100}; }

TEST(GemmTableTest, ReadsWhatItWrote) {
  GemmTable table = H200();
  table.Set(kShape, EntryOf(0xa7));
  table.Set(kShape.WithRows(128), EntryOf(3));
  GemmTable copy = H200();
  ASSERT_TRUE(copy.Add(table.Text(), "text").ok());
  EXPECT_EQ(copy.Text(), table.Text());
  ASSERT_NE(copy.Find(kShape), nullptr);
  EXPECT_EQ(copy.Find(kShape)->algorithm, EntryOf(0xa7).algorithm);
  EXPECT_EQ(copy.Find(kShape)->microseconds, 12.5);
  EXPECT_EQ(copy.Find(kShape.WithRows(65)), nullptr);
}

TEST(GemmTableTest, FindsTheNextSmallerOfTheSameLayer) {
  GemmTable table = H200();
  EXPECT_EQ(table.FindSmaller(kShape), nullptr);
  table.Set(kShape.WithRows(16), EntryOf(1));
  table.Set(kShape.WithRows(32), EntryOf(2));
  table.Set(kShape, EntryOf(3));
  GemmShape other = kShape.WithRows(48);
  other.has_bias = false;
  table.Set(other, EntryOf(4));
  ASSERT_NE(table.FindSmaller(kShape), nullptr);
  EXPECT_EQ(table.FindSmaller(kShape)->algorithm, EntryOf(2).algorithm);
  EXPECT_EQ(table.FindSmaller(kShape.WithRows(10'000))->algorithm, EntryOf(3).algorithm);
}

TEST(GemmTableTest, AddsOnlyWhatIsMissing) {
  GemmTable table = H200();
  table.Set(kShape, EntryOf(1));
  GemmTable more = H200();
  more.Set(kShape, EntryOf(2));
  more.Set(kShape.WithRows(16), EntryOf(2));
  ASSERT_TRUE(table.Add(more.Text(), "text").ok());
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(table.Find(kShape)->algorithm, EntryOf(1).algorithm);
}

TEST(GemmTableTest, RefusesTheTableOfAnotherDeviceOrLibrary) {
  GemmTable table = H200();
  table.Set(kShape, EntryOf(1));
  for (GemmTable here : {GemmTable("NVIDIA H100", 130100), GemmTable("NVIDIA H200", 130200)}) {
    const Status status = here.Add(table.Text(), "gemm.txt");
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("gemm.txt is of another device or library"));
    EXPECT_EQ(here.size(), 0U);
  }
}

TEST(GemmTableTest, NamesTheLineThatIsNone) {
  GemmTable table = H200();
  table.Set(kShape, EntryOf(1));
  const std::string good = table.Text();
  const std::string line = good.substr(good.find('\n') + 1);
  for (const std::string& bad :
       {std::string("words\n"), "64 " + line, line.substr(0, line.size() - 3) + "\n", "-" + line,
        line.substr(0, line.size() - 2) + "g\n", "99999999999999999999" + line}) {
    GemmTable other = H200();
    const Status status = other.Add(good + bad, "gemm.txt");
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(status.message(), HasSubstr("gemm.txt:3"));
    EXPECT_EQ(other.size(), 0U);
  }
  EXPECT_EQ(table.Add("", "gemm.txt").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table.Add("{}", "gemm.txt").code(), StatusCode::kInvalidArgument);
}

TEST(GemmTableTest, ReadsTheTableBuiltIn) {
  GemmTable table = H200();
  const Status status = table.Add(kH200GemmTable, "built in");
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(table.Text(), kH200GemmTable);
  // Qwen3-0.6B's gates and ups for one token.
  EXPECT_NE(table.Find({.rows = 16,
                        .out_features = 6144,
                        .in_features = 1024,
                        .x_stride = 1024,
                        .weight_stride = 1024,
                        .out_stride = 6144}),
            nullptr);
}

TEST(GemmTableTest, GoesThroughAFile) {
  const ::bouquet::testing::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "made" / "gemm.txt";
  GemmTable table = H200();
  EXPECT_EQ(table.ReadFile(path).code(), StatusCode::kNotFound);
  table.Set(kShape, EntryOf(9));
  ASSERT_TRUE(table.WriteFile(path).ok());
  GemmTable copy = H200();
  ASSERT_TRUE(copy.ReadFile(path).ok());
  EXPECT_EQ(copy.Text(), table.Text());
  EXPECT_FALSE(table.WriteFile("/proc/none/gemm.txt").ok());
}

}  // namespace
}  // namespace bouquet::rose::cuda
