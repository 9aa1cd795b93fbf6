#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rose/weights/safetensors_file.h"
#include "testing/random_model.h"
#include "testing/test_data.h"

namespace bouquet::rose {
namespace {

using ::bouquet::testing::TemporaryFolder;
using ::bouquet::testing::WriteFile;
using ::bouquet::testing::WriteSafetensors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\0');
}

Result<SafetensorsHeader> Parse(const std::string& file) {
  return ParseSafetensorsHeader({reinterpret_cast<const std::byte*>(file.data()), file.size()},
                                "w.safetensors");
}

TEST(SafetensorsHeaderTest, ReadsNamesShapesAndOffsetsInTheOrderOfTheData) {
  const Result<SafetensorsHeader> header = Parse(Bytes(
      R"({"__metadata__": {"format": "pt"},
          "b": {"dtype": "BF16", "shape": [3], "data_offsets": [8, 14]},
          "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
          "s": {"dtype": "U8", "shape": [], "data_offsets": [14, 15]}} )",
      15));
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  ASSERT_EQ(header->tensors.size(), 3U);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_THAT(header->tensors[0].shape, ElementsAre(1, 2));
  EXPECT_EQ(header->tensors[1].dtype, "BF16");
  EXPECT_EQ(header->tensors[1].num_elements, 3);
  EXPECT_EQ(header->tensors[2].num_elements, 1);
}

struct Damage {
  const char* what;
  std::string file;
  const char* message;
};

TEST(SafetensorsHeaderTest, RefusesEveryKindOfDamageByTensorAndValue) {
  const std::string a = R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]})";
  std::string long_length = Bytes(a + "}", 8);
  long_length[5] = 1;
  const Damage cases[] = {
      {"empty", "", "0 bytes are too few"},
      {"short", "abc", "3 bytes are too few"},
      {"length beyond the file", long_length, "header length"},
      {"not JSON", Bytes("{", 0), "not valid JSON"},
      {"not an object", Bytes("[]", 0), "must be a JSON object"},
      {"truncated", Bytes(a + "}", 7), "truncated"},
      {"trailing bytes", Bytes(a + "}", 9), "9 bytes of data, but the tensors end at 8"},
      {"overlap", Bytes(a + R"(, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", 8),
       "tensor b: data overlaps"},
      {"gap", Bytes(a + R"(, "b": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]}})", 16),
       "tensor b: data leaves a gap"},
      {"gap in front", Bytes(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})", 2),
       "leaves a gap"},
      {"duplicate",
       Bytes(a + R"(, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 8),
       "tensor a: is listed twice"},
      {"unknown dtype", Bytes(R"({"a": {"dtype": "X", "shape": [1], "data_offsets": [0, 1]}})", 1),
       "tensor a: dtype is unknown: X"},
      {"shape against size",
       Bytes(R"({"a": {"dtype": "F16", "shape": [3], "data_offsets": [0, 8]}})", 8),
       "[3] of F16 does not fill its 8 bytes"},
      {"negative size",
       Bytes(R"({"a": {"dtype": "F16", "shape": [-1], "data_offsets": [0, 0]}})", 0),
       "sizes of 0 and more"},
      {"fractional size",
       Bytes(R"({"a": {"dtype": "F16", "shape": [1.5], "data_offsets": [0, 3]}})", 3),
       "sizes of 0 and more"},
      {"falling offsets",
       Bytes(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}})", 1), "must rise"},
      {"three offsets",
       Bytes(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}})", 2),
       "two offsets"},
      {"no offsets", Bytes(R"({"a": {"dtype": "U8", "shape": [1]}})", 1), "two offsets"},
      {"no shape", Bytes(R"({"a": {"dtype": "U8", "data_offsets": [0, 1]}})", 1), "\"shape\""},
      {"overflowing count",
       Bytes(
           R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})",
           0),
       "overflows"},
      {"overflowing bytes",
       Bytes(R"({"a": {"dtype": "F64", "shape": [2305843009213693952], "data_offsets": [0, 0]}})",
             0),
       "does not fill"},
  };
  for (const Damage& damage : cases) {
    const Result<SafetensorsHeader> header = Parse(damage.file);
    ASSERT_FALSE(header.ok()) << damage.what;
    EXPECT_EQ(header.code(), StatusCode::kInvalidArgument) << damage.what;
    EXPECT_THAT(header.status().message(), HasSubstr(damage.message)) << damage.what;
    EXPECT_THAT(header.status().message(), HasSubstr("w.safetensors")) << damage.what;
  }
}

TEST(SafetensorsFileTest, MapsATensorAndCopiesOneThatIsNotAligned) {
  const TemporaryFolder folder;
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_NE((header.size() + 8) % 4, 0U) << "the data must start at an odd place for this test";
  std::string file = Bytes(header, 8);
  const float values[2] = {1.5F, -2.0F};
  std::memcpy(file.data() + 8 + header.size(), values, 8);
  WriteFile(folder.path() / "w.safetensors", file);
  Result<SafetensorsFile> opened = SafetensorsFile::Open(folder.path() / "w.safetensors");
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const auto* data = static_cast<const float*>(opened->Data(opened->header().tensors[0]));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignof(float), 0U);
  EXPECT_EQ(data[0], 1.5F);
  EXPECT_EQ(data[1], -2.0F);
}

TEST(SafetensorsFileTest, ReadsPagesAgainAfterTheyWereReleased) {
  const TemporaryFolder folder;
  WriteSafetensors(folder.path() / "w.safetensors", {{"a", {{2}, {3, 4}}}}, "F32");
  Result<SafetensorsFile> file = SafetensorsFile::Open(folder.path() / "w.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const auto* data = static_cast<const float*>(file->Data(file->header().tensors[0]));
  file->ReleasePages();
  EXPECT_EQ(data[1], 4);
}

TEST(SafetensorsFileTest, NamesAFileThatCannotBeRead) {
  const TemporaryFolder folder;
  const Status absent = SafetensorsFile::Open(folder.path() / "absent.safetensors").status();
  EXPECT_EQ(absent.code(), StatusCode::kNotFound);
  EXPECT_THAT(absent.message(), HasSubstr("absent.safetensors"));
  WriteFile(folder.path() / "empty.safetensors", "");
  EXPECT_EQ(SafetensorsFile::Open(folder.path() / "empty.safetensors").code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(SafetensorsFile::Open(folder.path()).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace bouquet::rose
