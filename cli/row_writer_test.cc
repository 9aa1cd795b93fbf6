#include "cli/row_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "testing/test_data.h"

namespace bouquet::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(RowWriterTest, WritesAnNpyFileWhoseHeaderHoldsTheFinalNumberOfRows) {
  const bouquet::testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "rows.npy";
  auto writer = RowWriter::Open(path).value();
  const std::array<float, 3> first = {1.0F, -2.5F, 3.0F};
  const std::array<float, 3> second = {4.0F, 5.0F, 6.0F};
  ASSERT_TRUE(writer->Write(first, false).ok());
  EXPECT_FALSE(fs::exists(path)) << "the name must appear only when the file is complete";
  ASSERT_TRUE(writer->Write(second, true).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const std::string content = ReadFile(path);
  ASSERT_EQ(content.size(), 128 + 2 * 3 * sizeof(float));
  EXPECT_THAT(content.substr(0, 128),
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ(content[127], '\n');
  float value = 0;
  std::memcpy(&value, content.data() + 128 + 4 * sizeof(float), sizeof(value));
  EXPECT_EQ(value, 5.0F);
}

TEST(RowWriterTest, WritesAnEmptyArrayForNoRows) {
  const bouquet::testing::TemporaryFolder folder;
  ASSERT_TRUE(RowWriter::Open(folder.path() / "rows.npy").value()->Finish().ok());
  EXPECT_THAT(ReadFile(folder.path() / "rows.npy"), HasSubstr("'shape': (0, 0)"));
}

TEST(RowWriterTest, WritesJsonLinesThatReadBackToTheSameFloats) {
  const bouquet::testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "rows.jsonl";
  auto writer = RowWriter::Open(path).value();
  const std::array<float, 2> row = {0.1F, -1e-9F};
  ASSERT_TRUE(writer->Write(row, false).ok());
  ASSERT_TRUE(writer->Write(row, true).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(ReadFile(path),
            "{\"index\":0,\"embedding\":[0.1,-1e-09]}\n"
            "{\"index\":1,\"embedding\":[0.1,-1e-09],\"truncated\":true}\n");
}

TEST(RowWriterTest, RemovesThePartFileWhenItIsNotFinished) {
  const bouquet::testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "rows.npy";
  std::ofstream(path) << "an older result";
  {
    auto writer = RowWriter::Open(path).value();
    const std::array<float, 1> row = {1.0F};
    ASSERT_TRUE(writer->Write(row, false).ok());
  }
  EXPECT_FALSE(fs::exists(path.string() + ".part"));
  EXPECT_EQ(ReadFile(path), "an older result");
}

TEST(RowWriterTest, RefusesANameOfUnknownKindAndAFolderThatIsNotThere) {
  EXPECT_THAT(RowWriter::Open("rows.csv").status().message(),
              HasSubstr("must end in .npy or .jsonl"));
  EXPECT_THAT(RowWriter::Open("/no/such/folder/rows.npy").status().message(),
              HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace bouquet::cli
