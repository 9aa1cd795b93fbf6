// The normalization forms against the Unicode Consortium's own test (NormalizationTest.txt). Our
// tables follow Unicode 9.0 on purpose (make_tables.py), so rows with newer characters are left
// out; on the others the reference library has no deviation, and neither have we.
#include "text/unicode/normalization.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "testing/test_data.h"
#include "text/unicode/utf8.h"

namespace bouquet::text::unicode {
namespace {

constexpr size_t kNumCodePoints = 0x110000;
constexpr int kMajorOfTables = 9;

std::string Form(std::string_view text, NormalizationForm form) {
  static NormalizationScratch scratch;
  std::string out;
  Normalize(text, form, scratch, NoSources(), out);
  return out;
}

char32_t ParseHex(std::string_view text) {
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// Takes the part up to `separator` off the front of `rest`, without spaces around it.
std::string_view Take(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  while (part.starts_with(' ')) {
    part.remove_prefix(1);
  }
  while (part.ends_with(' ')) {
    part.remove_suffix(1);
  }
  return part;
}

/// [code point] the major version of Unicode that added it; 99 where none has.
std::vector<int> ReadAges(const std::filesystem::path& path) {
  std::vector<int> ages(kNumCodePoints, 99);
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::string_view rest = line;
    std::string_view entry = Take(rest, '#');
    std::string_view range = Take(entry, ';');
    if (range.empty()) {
      continue;
    }
    const std::string_view first = Take(range, '.');
    const std::string_view last = range.empty() ? first : range.substr(1);
    for (char32_t c = ParseHex(first); c <= ParseHex(last); ++c) {
      ages[c] = std::stoi(std::string(entry));
    }
  }
  return ages;
}

struct Row {
  std::string line;
  std::array<std::string, 5> columns;  // source, NFC, NFD, NFKC, NFKD
  bool is_single = false;              // of part 1: one code point a row
  bool is_newer = false;               // than our tables
};

Row ParseRow(const std::string& line, bool is_single, const std::vector<int>& ages) {
  Row row{.line = line, .is_single = is_single};
  std::string_view rest = line;
  for (std::string& column : row.columns) {
    std::string_view code_points = Take(rest, ';');
    while (!code_points.empty()) {
      const char32_t c = ParseHex(Take(code_points, ' '));
      row.is_newer |= ages.at(c) > kMajorOfTables;
      Append(c, column);
    }
  }
  return row;
}

std::vector<Row> ReadRows(const std::filesystem::path& path, const std::vector<int>& ages) {
  std::vector<Row> rows;
  bool is_single = false;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('@')) {
      is_single = line.starts_with("@Part1");
    } else if (!line.empty() && !line.starts_with('#')) {
      rows.push_back(ParseRow(line, is_single, ages));
    }
  }
  return rows;
}

class NormalizationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_UNICODE_DATA("NormalizationTest.txt");
    REQUIRE_UNICODE_DATA("DerivedAge.txt");
    rows_ = ReadRows(testing::UnicodeDataPath("NormalizationTest.txt"),
                     ReadAges(testing::UnicodeDataPath("DerivedAge.txt")));
  }
  std::vector<Row> rows_;
};

TEST_F(NormalizationTest, HasTheInvariantsOfEveryRowOfUnicode9) {
  size_t num_equal = 0;
  for (const Row& row : rows_) {
    if (row.is_newer) {
      continue;
    }
    SCOPED_TRACE(row.line);
    const auto& [source, nfc, nfd, nfkc, nfkd] = row.columns;
    for (const std::string* text : {&source, &nfc, &nfd}) {
      EXPECT_EQ(Form(*text, NormalizationForm::kNfc), nfc);
      EXPECT_EQ(Form(*text, NormalizationForm::kNfd), nfd);
    }
    for (const std::string* text : {&nfkc, &nfkd}) {
      EXPECT_EQ(Form(*text, NormalizationForm::kNfc), nfkc);
      EXPECT_EQ(Form(*text, NormalizationForm::kNfd), nfkd);
    }
    for (const std::string& text : row.columns) {
      EXPECT_EQ(Form(text, NormalizationForm::kNfkc), nfkc);
      EXPECT_EQ(Form(text, NormalizationForm::kNfkd), nfkd);
    }
    ++num_equal;
  }
  fmt::print("{} rows; {} more, with characters newer than Unicode 9.0, are left out\n", num_equal,
             rows_.size() - num_equal);
  EXPECT_GE(num_equal, 18'000U);
}

TEST_F(NormalizationTest, LeavesEveryOtherCodePointAsItIs) {
  std::vector<bool> is_listed(kNumCodePoints);
  for (const Row& row : rows_) {
    if (row.is_single) {
      is_listed[Decode(row.columns[0]).value] = true;
    }
  }
  size_t num_others = 0;
  for (char32_t c = 0; c < kNumCodePoints; ++c) {
    if (is_listed[c] || (c >= 0xD800 && c < 0xE000)) {
      continue;
    }
    std::string text;
    Append(c, text);
    for (const auto form : {NormalizationForm::kNfc, NormalizationForm::kNfd,
                            NormalizationForm::kNfkc, NormalizationForm::kNfkd}) {
      ASSERT_EQ(Form(text, form), text) << fmt::format("U+{:04X}", static_cast<uint32_t>(c));
    }
    ++num_others;
  }
  EXPECT_GT(num_others, 1'000'000U);
}

}  // namespace
}  // namespace bouquet::text::unicode
