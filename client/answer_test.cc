#include "client/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/base64.h"

namespace bouquet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AnswerTest, ReadsOpenAiRowsInTheOrderOfTheirIndex) {
  const Result<EmbedRows> rows = ReadAnswer(
      Dialect::kOpenAi,
      R"({"object":"list","data":[{"index":1,"embedding":[3,4.5]},{"index":0,"embedding":[1,-2]}],
          "usage":{"prompt_tokens":7,"total_tokens":7}})",
      2);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->dimensions, 2U);
  EXPECT_THAT(rows->values, ElementsAre(1, -2, 3, 4.5));
  EXPECT_EQ(rows->total_tokens, 7);
}

TEST(AnswerTest, ReadsBase64AsFloatsAndTakesThePositionWhereNoIndexIs) {
  // 1.0F is 00 00 80 3f, -2.0F is 00 00 00 c0, little-endian.
  const Result<EmbedRows> rows =
      ReadAnswer(Dialect::kOpenAi, R"({"data":[{"embedding":"AACAPwAAAMA="}]})", 1);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(rows->values, ElementsAre(1, -2));
  EXPECT_EQ(rows->total_tokens, 0);
}

TEST(AnswerTest, ReadsTeiRows) {
  const Result<EmbedRows> rows = ReadAnswer(Dialect::kTei, "[[0.5,1],[2,3]]", 2);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(rows->values, ElementsAre(0.5, 1, 2, 3));
}

TEST(AnswerTest, RefusesWhatWasNotAskedForAndSaysWhat) {
  const struct {
    Dialect dialect;
    const char* body;
    const char* says;
  } cases[] = {
      {Dialect::kTei, "[[1],[2],[3]]", "beyond the 2 inputs"},
      {Dialect::kTei, "[[1]]", "1 rows for 2 inputs"},
      {Dialect::kTei, "[[1],[2,3]]", "another one 1"},
      {Dialect::kTei, "[[],[]]", "has 0 values"},
      {Dialect::kTei, "[[1],[1e300]]", "no float32"},
      {Dialect::kTei, "[[1],[null]]", "no float32"},
      {Dialect::kTei, "[[1],2]", "neither an array nor base64"},
      {Dialect::kTei, "{\"error\":\"x\"}", "no array of rows"},
      {Dialect::kTei, "[[1],[2", "not valid JSON"},
      {Dialect::kTei, "", "not valid JSON"},
      {Dialect::kOpenAi, "[]", "no array `data`"},
      {Dialect::kOpenAi, R"({"data":[{}]})", "no `embedding`"},
      {Dialect::kOpenAi, R"({"data":[7]})", "no `embedding`"},
      {Dialect::kOpenAi, R"({"data":[{"index":-1,"embedding":[1]}]})", "no index"},
      {Dialect::kOpenAi, R"({"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]})",
       "comes twice"},
      {Dialect::kOpenAi, R"({"data":[{"embedding":"AACAP"}]})", "not base64"},
      {Dialect::kOpenAi, R"({"data":[{"embedding":"AAC@Pw=="}]})", "not base64"},
      // 00 00 80 7f is infinity.
      {Dialect::kOpenAi, R"({"data":[{"embedding":"AACAfw=="}]})", "not finite"},
  };
  for (const auto& item : cases) {
    const Result<EmbedRows> rows = ReadAnswer(item.dialect, item.body, 2);
    ASSERT_FALSE(rows.ok()) << item.body;
    EXPECT_EQ(rows.code(), StatusCode::kInternal) << item.body;
    EXPECT_THAT(rows.status().message(), HasSubstr(item.says)) << item.body;
  }
}

TEST(AnswerTest, FindsTheMessageOfAnErrorInEveryDialect) {
  EXPECT_EQ(ReadErrorMessage(R"({"error":{"message":"too long","type":"x"}})"), "too long");
  EXPECT_EQ(ReadErrorMessage(R"({"error":"Overloaded","error_type":"o"})"), "Overloaded");
  EXPECT_EQ(ReadErrorMessage(R"({"message":"no"})"), "no");
  EXPECT_EQ(ReadErrorMessage("<html>\x1b[2J"), "<html>?[2J");
  EXPECT_EQ(ReadErrorMessage(""), "");
}

TEST(Base64Test, ReadsWithAndWithoutPadding) {
  for (const char* text : {"AACAPw==", "AACAPw"}) {
    std::vector<float> values;
    EXPECT_TRUE(AppendBase64Floats(text, values)) << text;
    EXPECT_THAT(values, ElementsAre(1));
  }
  std::vector<float> three;
  EXPECT_TRUE(AppendBase64Floats("AACAPwAAAEAAAEBA", three));
  EXPECT_THAT(three, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace bouquet::client
