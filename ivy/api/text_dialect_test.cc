#include "ivy/api/text_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace bouquet::ivy::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Request Parsed(const TextDialect& dialect, std::string_view body) {
  Request request;
  const std::optional<Error> error = ParseBody(body, dialect.body, {}, request);
  EXPECT_FALSE(error) << body << ": " << error->field << ": " << error->message;
  return request;
}

Error Refused(const TextDialect& dialect, std::string_view body) {
  Request request;
  const std::optional<Error> error = ParseBody(body, dialect.body, {}, request);
  EXPECT_TRUE(error) << "accepted: " << body;
  return error.value_or(Error());
}

std::string Rendered(const TextDialect& dialect, const TextAnswers& answers) {
  std::string out;
  dialect.render(answers, out);
  return out;
}

/// "[CLS] é" with its prompt.
TextAnswer Answer() {
  TextAnswer answer;
  answer.text = "a \u00e9";
  answer.tokens.ids = {101, 7, 9};
  answer.tokens.spans = {{0, 0}, {0, 1}, {2, 4}};
  answer.tokens.special_mask = {1, 0, 0};
  answer.pieces = {"[CLS]", "a", "e"};
  return answer;
}

TEST(TextDialectTest, ReadsTheShapesOfEachRoute) {
  EXPECT_EQ(Parsed(kTeiTokenize, R"({"inputs":"a"})").inputs.size(), 1U);
  const Request two = Parsed(kTeiTokenize, R"({"inputs":["a",""],"add_special_tokens":false,)"
                                           R"("count_only":true,"prompt_name":"query"})");
  ASSERT_EQ(two.inputs.size(), 2U);
  EXPECT_EQ(std::get<std::string>(two.inputs[1]), "");
  EXPECT_FALSE(two.add_special_tokens);
  EXPECT_TRUE(two.count_only);
  EXPECT_EQ(two.prompt_name, "query");

  const Request lists = Parsed(kTeiDecode, R"({"ids":[[1,2],[]],"skip_special_tokens":false})");
  ASSERT_EQ(lists.inputs.size(), 2U);
  EXPECT_THAT(std::get<std::vector<int32_t>>(lists.inputs[0]), ElementsAre(1, 2));
  EXPECT_FALSE(lists.skip_special_tokens);
  EXPECT_TRUE(lists.inputs_are_list);
  const Request one = Parsed(kTeiDecode, R"({"ids":[1,2]})");
  ASSERT_EQ(one.inputs.size(), 1U);
  EXPECT_FALSE(one.inputs_are_list);
  EXPECT_TRUE(one.skip_special_tokens);
  EXPECT_EQ(Parsed(kTeiDecode, R"({"ids":[]})").inputs.size(), 1U);

  EXPECT_TRUE(
      Parsed(kVllmTokenize, R"({"prompt":"","return_token_strs":true})").return_token_strings);
  EXPECT_THAT(std::get<std::vector<int32_t>>(
                  Parsed(kVllmDetokenize, R"({"tokens":[3],"model":"m"})").inputs[0]),
              ElementsAre(3));
}

TEST(TextDialectTest, RefusesOtherShapesByTheirPath) {
  EXPECT_EQ(Refused(kTeiTokenize, R"({"inputs":[1]})").field, "inputs[0]");
  EXPECT_EQ(Refused(kTeiTokenize, R"({"inputs":["a",[1]]})").field, "inputs[1]");
  EXPECT_EQ(Refused(kTeiTokenize, R"({"inputs":[]})").kind, ErrorKind::kEmptyInput);
  EXPECT_EQ(Refused(kTeiDecode, R"({"ids":"a"})").field, "ids");
  EXPECT_EQ(Refused(kTeiDecode, R"({"ids":[[1],"a"]})").field, "ids[1]");
  EXPECT_EQ(Refused(kTeiDecode, R"({"ids":[[1,1.5]]})").field, "ids[0][1]");
  EXPECT_THAT(Refused(kVllmTokenize, R"({"prompt":["a"]})").message, HasSubstr("a string"));
  EXPECT_EQ(Refused(kVllmDetokenize, R"({"tokens":[[1]]})").field, "tokens[0]");
  EXPECT_EQ(Refused(kVllmTokenize, R"({"messages":[]})").field, "messages");
}

TEST(TextDialectTest, TellsVllmFromTeiByTheFieldThatIsThere) {
  EXPECT_EQ(&TokenizeDialectOf(R"({"inputs":"a"})", {}), &kTeiTokenize);
  EXPECT_EQ(&TokenizeDialectOf(R"({"prompt":"a"})", {}), &kVllmTokenize);
  EXPECT_EQ(&TokenizeDialectOf("\xEF\xBB\xBF{\"prompt\":\"a\"}", {}), &kVllmTokenize);
  EXPECT_EQ(&TokenizeDialectOf(R"({"messages":[]})", {}), &kVllmTokenize);
  EXPECT_EQ(&TokenizeDialectOf(R"({"inputs":{"prompt":"a"}})", {}), &kTeiTokenize);
  EXPECT_EQ(&TokenizeDialectOf("nonsense", {}), &kTeiTokenize);
  EXPECT_EQ(&TokenizeDialectOf("[]", {}), &kTeiTokenize);
}

TEST(TextDialectTest, RendersTokensAsTei) {
  const std::vector<TextAnswer> answers = {Answer(), TextAnswer()};
  EXPECT_EQ(Rendered(kTeiTokenize, {.answers = answers}),
            "[[{\"id\":101,\"text\":\"[CLS]\",\"special\":true,\"start\":null,\"stop\":null},"
            "{\"id\":7,\"text\":\"a\",\"special\":false,\"start\":0,\"stop\":1},"
            "{\"id\":9,\"text\":\"\u00e9\",\"special\":false,\"start\":2,\"stop\":4}],[]]");
  EXPECT_EQ(Rendered(kTeiTokenize, {.answers = answers, .count_only = true}), "[3,0]");
  EXPECT_EQ(Rendered(kTeiDecode, {.answers = answers}), "[\"a \u00e9\",\"\"]");
}

TEST(TextDialectTest, RendersTokensAsVllm) {
  const std::vector<TextAnswer> answers = {Answer()};
  EXPECT_EQ(Rendered(kVllmTokenize, {.answers = answers, .max_input_tokens = 512}),
            R"({"count":3,"max_model_len":512,"tokens":[101,7,9],"token_strs":null})");
  EXPECT_EQ(Rendered(kVllmTokenize,
                     {.answers = answers, .return_token_strings = true, .max_input_tokens = 512}),
            R"({"count":3,"max_model_len":512,"tokens":[101,7,9],)"
            R"("token_strs":["[CLS]","a","e"]})");
  EXPECT_EQ(
      Rendered(kVllmTokenize, {.answers = answers, .count_only = true, .max_input_tokens = 512}),
      R"({"count":3,"max_model_len":512,"tokens":[],"token_strs":null})");
  EXPECT_EQ(Rendered(kVllmDetokenize, {.answers = answers}), "{\"prompt\":\"a \u00e9\"}");
}

}  // namespace
}  // namespace bouquet::ivy::api
