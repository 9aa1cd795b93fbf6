#include "ivy/api/tei.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ivy/api/openai.h"

namespace bouquet::ivy::api {
namespace {

using ::testing::ElementsAre;

Request Parsed(std::string_view body) {
  ParseResult result = kTeiEmbed.parse(body, {});
  if (const Error* error = std::get_if<Error>(&result)) {
    ADD_FAILURE() << body << ": " << error->field << ": " << error->message;
    return {};
  }
  return std::get<Request>(std::move(result));
}

Error Refused(std::string_view body) {
  ParseResult result = kTeiEmbed.parse(body, {});
  if (std::holds_alternative<Request>(result)) {
    ADD_FAILURE() << "accepted: " << body;
    return {};
  }
  return std::get<Error>(std::move(result));
}

TEST(TeiTest, ReadsEveryShapeOfInputs) {
  EXPECT_EQ(Parsed(R"({"inputs":"a"})").inputs.size(), 1U);
  EXPECT_EQ(Parsed(R"({"inputs":["a","b"]})").inputs.size(), 2U);
  EXPECT_EQ(Parsed(R"({"inputs":[1,2]})").inputs.size(), 1U);
  const Request mixed = Parsed(R"({"inputs":["a",[7,8],"b"]})");
  ASSERT_EQ(mixed.inputs.size(), 3U);
  EXPECT_EQ(std::get<std::string>(mixed.inputs[2]), "b");
  EXPECT_THAT(std::get<std::vector<int32_t>>(mixed.inputs[1]), ElementsAre(7, 8));
  EXPECT_EQ(mixed.inputs_field, "inputs");
}

TEST(TeiTest, NormalisesAndTruncatesUnlessTold) {
  const Request request = Parsed(R"({"inputs":"a"})");
  EXPECT_EQ(request.normalize, true);
  EXPECT_EQ(request.dialect_over_length, text::OverLength::kTruncate);
  EXPECT_FALSE(request.truncate.has_value());
  const Request told =
      Parsed(R"({"inputs":"a","normalize":false,"truncate":false,"truncation_direction":"left"})");
  EXPECT_EQ(told.normalize, false);
  EXPECT_EQ(told.truncate, false);
  EXPECT_EQ(told.truncation_side, text::TruncationSide::kLeft);
  EXPECT_EQ(Parsed(R"({"inputs":"a","truncation_direction":"Right"})").truncation_side,
            text::TruncationSide::kRight);
  EXPECT_EQ(Parsed(R"({"inputs":"a","normalize":null})").normalize, true);
}

TEST(TeiTest, RefusesWithThePath) {
  EXPECT_EQ(Refused(R"({"inputs":["a",""]})").field, "inputs[1]");
  EXPECT_EQ(Refused(R"({"inputs":["a",""]})").kind, ErrorKind::kEmptyInput);
  EXPECT_EQ(Refused(R"({"inputs":["a",[]]})").field, "inputs[1]");
  EXPECT_EQ(Refused(R"({"inputs":["a",[1,-1]]})").field, "inputs[1][1]");
  EXPECT_EQ(Refused(R"({"inputs":["a",7]})").field, "inputs[1]");
  EXPECT_EQ(Refused(R"({"text":"a"})").field, "inputs");
}

TEST(TeiTest, RendersBareRows) {
  EncodedRows rows;
  rows.dimensions = 2;
  rows.values = {0.5F, 1.0F, 0.0F, -0.25F};
  rows.token_counts = {1, 1};
  rows.truncated = {0, 0};
  std::string out;
  kTeiEmbed.render({.rows = rows, .model = "m"}, out);
  EXPECT_EQ(out, "[[0.5,1],[0,-0.25]]");
}

TEST(TeiTest, TruncatesOnItsOpenAiRouteToo) {
  ParseResult result = kTeiOpenAiEmbeddings.parse(R"({"input":"a"})", {});
  EXPECT_EQ(std::get<Request>(result).dialect_over_length, text::OverLength::kTruncate);
}

}  // namespace
}  // namespace bouquet::ivy::api
