#include "cli/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "testing/test_data.h"

namespace bouquet::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LineReaderTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& content) {
    const std::string path = folder_.path() / "input";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  Result<std::vector<std::string>> ReadAll(const std::string& content, TextFormat format) {
    ASSIGN_OR_RETURN(LineReader source, LineReader::Open(Write(content), format, "text"));
    std::vector<std::string> texts;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<InputText> next, source.Next());
      if (!next) {
        return texts;
      }
      texts.push_back(next->text);
    }
  }

  bouquet::testing::TemporaryFolder folder_;
};

TEST_F(LineReaderTest, GivesEachLineWithoutItsEnd) {
  EXPECT_THAT(ReadAll("one\ntwo\r\n\n  three ", TextFormat::kLines).value(),
              ElementsAre("one", "two", "", "  three "));
}

TEST_F(LineReaderTest, GivesNothingForAnEmptyFile) {
  EXPECT_THAT(ReadAll("", TextFormat::kLines).value(), ElementsAre());
}

TEST_F(LineReaderTest, SkipsAByteOrderMarkBeforeTheFirstLineOnly) {
  EXPECT_THAT(ReadAll("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n", TextFormat::kLines).value(),
              ElementsAre("one", "\xEF\xBB\xBFtwo"));
}

TEST_F(LineReaderTest, CutsPairsAtTheTabOrTakesTwoFields) {
  const auto read = [this](const std::string& content, TextFormat format) {
    Result<LineReader> source = LineReader::Open(Write(content), format, "q", "d");
    return source.value().Next();
  };
  const auto lines = read("one\ttwo \n", TextFormat::kLines).value();
  EXPECT_EQ(lines->text, "one");
  EXPECT_EQ(lines->second, "two ");
  const auto json = read(R"({"d":"two","q":"one"})", TextFormat::kJsonl).value();
  EXPECT_EQ(json->text, "one");
  EXPECT_EQ(json->second, "two");
  EXPECT_THAT(read("one\n", TextFormat::kLines).status().message(), HasSubstr(":1: a pair is"));
  EXPECT_FALSE(read("a\tb\tc\n", TextFormat::kLines).ok());
  EXPECT_THAT(read(R"({"q":"one"})", TextFormat::kJsonl).status().message(), HasSubstr("\"d\""));
}

TEST_F(LineReaderTest, JoinsALineThatSpansSeveralReads) {
  const std::string text(300'000, 'x');
  EXPECT_THAT(ReadAll(text + "\nend\n", TextFormat::kLines).value(), ElementsAre(text, "end"));
}

TEST_F(LineReaderTest, TakesTheFieldOfEachJsonLine) {
  EXPECT_THAT(
      ReadAll("{\"text\":\"a\\nb\",\"id\":1}\n{\"id\":2,\"text\":\"\"}\n", TextFormat::kJsonl)
          .value(),
      ElementsAre("a\nb", ""));
}

TEST_F(LineReaderTest, NamesFileLineAndFieldOfABadJsonLine) {
  const Status missing =
      ReadAll("{\"text\":\"a\"}\n{\"other\":\"b\"}\n", TextFormat::kJsonl).status();
  EXPECT_EQ(missing.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(missing.message(), HasSubstr("input:2: \"text\" is missing"));
  EXPECT_THAT(ReadAll("{\"text\":1}\n", TextFormat::kJsonl).status().message(),
              HasSubstr("input:1: \"text\" must be a string, not number"));
  EXPECT_THAT(ReadAll("{\"text\":\n", TextFormat::kJsonl).status().message(),
              HasSubstr("input:1: not valid JSON"));
}

TEST_F(LineReaderTest, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(LineReader::Open("/no/such/file", TextFormat::kLines, "").status().message(),
              HasSubstr("cannot read /no/such/file: No such file"));
  EXPECT_THAT(LineReader::Open(folder_.path(), TextFormat::kLines, "").status().message(),
              HasSubstr("is a folder"));
}

}  // namespace
}  // namespace bouquet::cli
