#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace bouquet {
namespace {

using ::testing::HasSubstr;

TEST(JsonDocumentTest, NamesTheSourceOfAnError) {
  const Status status = JsonDocument::Parse("{\"a\": }", "config.json").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("config.json: not valid JSON"));
  EXPECT_EQ(JsonDocument::ParseFile("/no/such/file").code(), StatusCode::kNotFound);
}

TEST(JsonDocumentTest, RefusesTextsThatAreTooDeepOrTruncatedOrEmpty) {
  EXPECT_TRUE(JsonDocument::Parse("[[[1]]]", "body", 4).ok());
  EXPECT_FALSE(JsonDocument::Parse("[[[[[1]]]]]", "body", 4).ok());
  EXPECT_FALSE(JsonDocument::Parse("[1,", "body").ok());
  EXPECT_FALSE(JsonDocument::Parse("", "body").ok());
}

TEST(JsonObjectTest, TellsAbsentFromWrong) {
  const auto document = JsonDocument::Parse(
      R"({"n": 5, "s": "x", "b": true, "d": 0.5, "z": null, "o": {"n": 1}})", "f.json");
  const JsonObject object = JsonObject::From(document->root(), "f.json").value();
  EXPECT_EQ(object.Integer("n", 0, 10).value(), 5);
  EXPECT_EQ(object.Integer("absent", 0, 10).value(), std::nullopt);
  EXPECT_EQ(object.Integer("z", 0, 10).value(), std::nullopt);
  EXPECT_EQ(object.String("s").value(), "x");
  EXPECT_EQ(object.Bool("b").value(), true);
  EXPECT_EQ(object.Number("d").value(), 0.5);
  EXPECT_EQ(object.Number("n").value(), 5.0);
  EXPECT_EQ(object.Object("o").value()->RequiredInteger("n", 0, 1).value(), 1);
  EXPECT_THAT(object.Integer("n", 0, 4).status().message(),
              HasSubstr("f.json: \"n\" must be 0..4, not 5"));
  EXPECT_THAT(object.Integer("s", 0, 4).status().message(),
              HasSubstr("f.json: \"s\" must be an integer, not string"));
  EXPECT_THAT(object.Integer("d", 0, 4).status().message(),
              HasSubstr("must be an integer, not number"));
  EXPECT_THAT(object.RequiredBool("absent").status().message(),
              HasSubstr("f.json: \"absent\" is missing"));
  EXPECT_THAT(object.RequiredString("absent").status().message(),
              HasSubstr("f.json: \"absent\" is missing"));
  EXPECT_THAT(object.Object("o").value()->RequiredString("n").status().message(),
              HasSubstr("f.json: \"o\": \"n\" must be a string, not number"));
}

TEST(AppendJsonStringTest, WritesWhatAParserReadsBack) {
  using std::string_literals::operator""s;
  const std::string text =
      "quote \" slash \\ line \n tab \t nul \0 bell \a \xC3\xA9 \xF0\x9F\x98\x80"s;
  std::string json;
  AppendJsonString(text, json);
  const auto document = JsonDocument::Parse(json, "text");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->root().get_string().value(), text);
}

TEST(AppendJsonFloatTest, ReadsBackToTheSameFloat) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) {
      continue;
    }
    std::string text;
    AppendJsonFloat(value, text);
    float read_back = 0;
    std::from_chars(text.data(), text.data() + text.size(), read_back);
    EXPECT_EQ(read_back, value) << text;
  }
  std::string shortest;
  AppendJsonFloat(0.1F, shortest);
  EXPECT_EQ(shortest, "0.1");
}

}  // namespace
}  // namespace bouquet
