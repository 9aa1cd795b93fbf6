#include "ivy/api/openai.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace bouquet::ivy::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Request Parsed(std::string_view body, const ParseOptions& options = {}) {
  ParseResult result = kOpenAiEmbeddings.parse(body, options);
  if (const Error* error = std::get_if<Error>(&result)) {
    ADD_FAILURE() << body << ": " << error->field << ": " << error->message;
    return {};
  }
  return std::get<Request>(std::move(result));
}

Error Refused(std::string_view body, const ParseOptions& options = {}) {
  ParseResult result = kOpenAiEmbeddings.parse(body, options);
  if (std::holds_alternative<Request>(result)) {
    ADD_FAILURE() << "accepted: " << body.substr(0, 200);
    return {};
  }
  return std::get<Error>(std::move(result));
}

void ExpectRefused(std::string_view body, ErrorKind kind, std::string_view field,
                   std::string_view part = "", const ParseOptions& options = {}) {
  const Error error = Refused(body, options);
  EXPECT_EQ(ErrorKindName(error.kind), ErrorKindName(kind)) << body << ": " << error.message;
  EXPECT_EQ(error.field, field) << body << ": " << error.message;
  EXPECT_THAT(error.message, HasSubstr(part)) << body;
}

std::string Text(const EncodeInput& input) { return std::get<std::string>(input); }
std::vector<int32_t> Ids(const EncodeInput& input) { return std::get<std::vector<int32_t>>(input); }

TEST(OpenAiTest, ReadsEveryShapeOfInput) {
  Request one = Parsed(R"({"model":"m","input":"hello"})");
  EXPECT_EQ(one.model, "m");
  ASSERT_EQ(one.inputs.size(), 1U);
  EXPECT_EQ(Text(one.inputs[0]), "hello");
  EXPECT_FALSE(one.inputs_are_list);
  EXPECT_EQ(one.inputs_field, "input");

  Request list = Parsed(R"({"input":["a","b"]})");
  ASSERT_EQ(list.inputs.size(), 2U);
  EXPECT_EQ(Text(list.inputs[1]), "b");
  EXPECT_TRUE(list.inputs_are_list);

  Request ids = Parsed(R"({"input":[101,7592,102]})");
  ASSERT_EQ(ids.inputs.size(), 1U);
  EXPECT_THAT(Ids(ids.inputs[0]), ElementsAre(101, 7592, 102));
  EXPECT_FALSE(ids.inputs_are_list);

  Request lists = Parsed(R"({"input":[[1],[2,3]]})");
  ASSERT_EQ(lists.inputs.size(), 2U);
  EXPECT_THAT(Ids(lists.inputs[1]), ElementsAre(2, 3));
}

TEST(OpenAiTest, ReadsEveryField) {
  const Request request = Parsed(
      R"({"input":"x","encoding_format":"base64","dimensions":64,"user":"me","prompt_name":"query",
          "normalize":false,"truncate":true,"truncation_direction":"LEFT","partial":true})");
  EXPECT_EQ(request.encoding, VectorEncoding::kBase64);
  EXPECT_EQ(request.dimensions, 64);
  EXPECT_EQ(request.prompt_name, "query");
  EXPECT_EQ(request.normalize, false);
  EXPECT_EQ(request.truncate, true);
  EXPECT_EQ(request.truncation_side, text::TruncationSide::kLeft);
  EXPECT_TRUE(request.allow_partial);
  const Request vllm = Parsed(
      R"({"input":"x","truncate_prompt_tokens":-1,"truncation_side":"right","prompt":"p: "})");
  EXPECT_EQ(vllm.max_tokens, -1);
  EXPECT_EQ(vllm.truncation_side, text::TruncationSide::kRight);
  EXPECT_EQ(vllm.prompt, "p: ");
}

TEST(OpenAiTest, TakesNullAsAbsentExceptForTheInput) {
  const Request request = Parsed(
      R"({"input":"x","dimensions":null,"encoding_format":null,"user":null,"truncate":null})");
  EXPECT_FALSE(request.dimensions.has_value());
  EXPECT_FALSE(request.truncate.has_value());
  ExpectRefused(R"({"input":null})", ErrorKind::kInvalidValue, "input", "null");
}

TEST(OpenAiTest, NamesPathValueAndTypeForEveryWrongType) {
  ExpectRefused(R"({"input":5})", ErrorKind::kInvalidValue, "input", "5");
  ExpectRefused(R"({"input":{"a":1}})", ErrorKind::kInvalidValue, "input", "an object");
  ExpectRefused(R"({"input":["a",5]})", ErrorKind::kInvalidValue, "input[1]", "5");
  ExpectRefused(R"({"input":["a",null]})", ErrorKind::kInvalidValue, "input[1]", "null");
  ExpectRefused(R"({"input":["a",[1]]})", ErrorKind::kInvalidValue, "input[1]", "mix");
  ExpectRefused(R"({"input":[{"text":"a"}]})", ErrorKind::kInvalidValue, "input[0]", "an object");
  ExpectRefused(R"({"input":[1,"a"]})", ErrorKind::kInvalidValue, "input[1]", "\"a\"");
  ExpectRefused(R"({"input":[[1,"a"]]})", ErrorKind::kInvalidValue, "input[0][1]", "\"a\"");
  ExpectRefused(R"({"input":[[[1]]]})", ErrorKind::kInvalidValue, "input[0][0]", "an array");
  ExpectRefused(R"({"input":"x","model":7})", ErrorKind::kInvalidValue, "model", "a string, not 7");
  ExpectRefused(R"({"input":"x","user":7})", ErrorKind::kInvalidValue, "user", "a string");
  ExpectRefused(R"({"input":"x","dimensions":"64"})", ErrorKind::kInvalidValue, "dimensions",
                "\"64\"");
  ExpectRefused(R"({"input":"x","dimensions":64.0})", ErrorKind::kInvalidValue, "dimensions");
  ExpectRefused(R"({"input":"x","normalize":"yes"})", ErrorKind::kInvalidValue, "normalize",
                "true or false");
  ExpectRefused(R"({"input":"x","truncate":"END"})", ErrorKind::kInvalidValue, "truncate");
  ExpectRefused(R"({"input":"x","encoding_format":"base64_int8"})", ErrorKind::kInvalidValue,
                "encoding_format", "\"float\", \"base64\"");
  ExpectRefused(R"({"input":"x","truncation_side":"up"})", ErrorKind::kInvalidValue,
                "truncation_side");
  ExpectRefused(R"([1])", ErrorKind::kInvalidValue, "", "object");
  ExpectRefused(R"("x")", ErrorKind::kInvalidValue, "", "object");
  ExpectRefused(R"({"model":"m"})", ErrorKind::kInvalidValue, "input", "required");
}

TEST(OpenAiTest, RefusesNumbersOutOfRange) {
  for (const std::string_view value : {"0", "-1", "2147483648", "9223372036854775808"}) {
    ExpectRefused(R"({"input":"x","dimensions":)" + std::string(value) + "}",
                  ErrorKind::kInvalidValue, "dimensions", std::string(value));
  }
  ExpectRefused(R"({"input":"x","truncate_prompt_tokens":-2})", ErrorKind::kInvalidValue,
                "truncate_prompt_tokens", "at least -1");
  ExpectRefused(R"({"input":"x","truncate_prompt_tokens":0})", ErrorKind::kInvalidValue,
                "truncate_prompt_tokens");
}

TEST(OpenAiTest, TakesTokenIdsOnlyAsPlainIntegers) {
  for (const std::string_view id :
       {"-1", "2147483648", "4294967296", "18446744073709551615", "5.0", "1e3", "true", "null"}) {
    ExpectRefused(R"({"input":[3,)" + std::string(id) + "]}", ErrorKind::kInvalidValue, "input[1]",
                  "token ids must be integers");
    ExpectRefused(R"({"input":[[3],[4,)" + std::string(id) + "]]}", ErrorKind::kInvalidValue,
                  "input[1][1]", "token ids must be integers");
  }
  EXPECT_THAT(Ids(Parsed(R"({"input":[0,2147483647]})").inputs[0]), ElementsAre(0, 2147483647));
  ExpectRefused(R"({"input":[18446744073709551616]})", ErrorKind::kInvalidValue, "input[0]",
                "out of range");
}

TEST(OpenAiTest, RefusesTokenIdsWhenToldTo) {
  ParseOptions options;
  options.accept_token_ids = false;
  ExpectRefused(R"({"input":[1,2]})", ErrorKind::kInvalidValue, "input", "--token-input", options);
  ExpectRefused(R"({"input":[[1],[2]]})", ErrorKind::kInvalidValue, "input[0]", "", options);
}

TEST(OpenAiTest, RefusesEmptyInputWithThePathOfTheFirst) {
  ExpectRefused(R"({"input":""})", ErrorKind::kEmptyInput, "input");
  ExpectRefused(R"({"input":[]})", ErrorKind::kEmptyInput, "input");
  ExpectRefused(R"({"input":["ok","","ok",""]})", ErrorKind::kEmptyInput, "input[1]");
  ExpectRefused(R"({"input":[[]]})", ErrorKind::kEmptyInput, "input[0]");
  ExpectRefused(R"({"input":[[1],[]]})", ErrorKind::kEmptyInput, "input[1]");
}

TEST(OpenAiTest, KeepsWhitespaceNulAndByteOrderMarks) {
  EXPECT_EQ(Text(Parsed(R"({"input":" "})").inputs[0]), " ");
  EXPECT_EQ(Text(Parsed(R"({"input":"a\u0000b"})").inputs[0]), std::string("a\0b", 3));
  EXPECT_EQ(Text(Parsed("\xEF\xBB\xBF{\"input\":\"\xEF\xBB\xBFx\"}").inputs[0]), "\xEF\xBB\xBFx");
}

TEST(OpenAiTest, NamesTheByteOfMalformedJson) {
  ExpectRefused("", ErrorKind::kMalformedBody, "", "at byte 0");
  ExpectRefused(R"({"input":"x")", ErrorKind::kMalformedBody, "", "at byte 12");
  ExpectRefused("\xEF\xBB\xBF{\"input\":}", ErrorKind::kMalformedBody, "input", "at byte 12");
  ExpectRefused("{\"input\":[\"ok\",\"\xFF\"]}", ErrorKind::kMalformedBody, "input[1]",
                "invalid UTF-8");
  ExpectRefused(R"({"input":"bad \ud800 text"})", ErrorKind::kMalformedBody, "input",
                "lone surrogate");
  ExpectRefused(R"({"input":["\ud83d","\ude00"]})", ErrorKind::kMalformedBody, "input[0]",
                "lone surrogate");
}

TEST(OpenAiTest, LimitsDepthOfWhatItDoesNotRead) {
  const auto nested = [](size_t depth, std::string_view inside) {
    return R"({"input":"x","other":)" + std::string(depth, '[') + std::string(inside) +
           std::string(depth, ']') + "}";
  };
  Parsed(nested(15, "1"));
  Parsed(nested(15, ""));
  ExpectRefused(nested(16, "1"), ErrorKind::kMalformedBody,
                Shorten("other[0][0][0][0][0][0][0][0]"
                        "[0][0][0][0][0][0][0]"),
                "--max-json-depth");
  EXPECT_EQ(Refused(nested(16, "")).kind, ErrorKind::kMalformedBody);
  EXPECT_EQ(Refused(nested(100'000, "")).kind, ErrorKind::kMalformedBody);
}

TEST(OpenAiTest, RefusesDuplicateKeysAnywhere) {
  ExpectRefused(R"({"input":"x","input":"y"})", ErrorKind::kInvalidValue, "input", "twice");
  ExpectRefused(R"({"input":"x","a":1,"a":2})", ErrorKind::kInvalidValue, "a", "twice");
  ExpectRefused(R"({"input":"x","":1,"":2})", ErrorKind::kInvalidValue, R"("")", "twice");
  ExpectRefused(R"({"input":"x","a":{"b":[{"c":1,"c":2}]}})", ErrorKind::kInvalidValue, "a.b[0].c",
                "twice");
  std::string many = R"({"input":"x")";
  for (int i = 0; i < 40; ++i) {
    many += R"(,"k)" + std::to_string(i) + R"(":0)";
  }
  Parsed(many + "}");
  ExpectRefused(many + R"(,"k7":0})", ErrorKind::kInvalidValue, "k7", "twice");
}

TEST(OpenAiTest, IgnoresUnknownFieldsUnlessStrict) {
  Parsed(R"({"input":"x","metadata":{"a":[1]}})");
  ParseOptions strict;
  strict.strict_fields = true;
  ExpectRefused(R"({"input":"x","metadata":1})", ErrorKind::kInvalidValue, "metadata",
                "--strict-fields", strict);
}

TEST(OpenAiTest, NeverIgnoresAFieldThatWouldChangeTheResult) {
  for (const std::string_view field :
       {"task", "late_chunking", "embedding_type", "output_dtype", "messages", "embed_dtype"}) {
    ExpectRefused(R"({"input":"x",")" + std::string(field) + R"(":"a"})", ErrorKind::kInvalidValue,
                  field, "not supported");
  }
}

TEST(OpenAiTest, RefusesFieldsThatContradict) {
  ExpectRefused(R"({"input":"x","prompt":"a","prompt_name":"b"})", ErrorKind::kInvalidValue,
                "prompt", "prompt_name");
  ExpectRefused(R"({"input":"x","truncate":false,"truncate_prompt_tokens":5})",
                ErrorKind::kInvalidValue, "truncate", "truncate_prompt_tokens");
}

std::string ListOf(size_t count) {
  std::string body = R"({"input":[)";
  for (size_t i = 0; i < count; ++i) {
    body += i == 0 ? R"("a")" : R"(,"a")";
  }
  return body + "]}";
}

TEST(OpenAiTest, TellsTheContractFromTheOperatorsLimit) {
  EXPECT_EQ(Parsed(ListOf(2048)).inputs.size(), 2048U);
  ExpectRefused(ListOf(2049), ErrorKind::kInvalidValue, "input", "2049 given, 2048 allowed");
  ParseOptions low;
  low.max_inputs = 3;
  ExpectRefused(ListOf(4), ErrorKind::kTooLarge, "input", "--max-inputs-per-request", low);
  ParseOptions high;
  high.max_inputs = 10'000;
  ExpectRefused(ListOf(2049), ErrorKind::kInvalidValue, "input", "OpenAI", high);
}

EncodedRows TwoRows() {
  EncodedRows rows;
  rows.dimensions = 2;
  rows.values = {0.5F, -1.0F, 0.1F, 2.0F};
  rows.token_counts = {3, 4};
  rows.truncated = {0, 1};
  rows.statuses.resize(2);
  return rows;
}

TEST(OpenAiTest, RendersFloatsWithWhatWasCut) {
  const EncodedRows rows = TwoRows();
  std::string out;
  kOpenAiEmbeddings.render({.rows = rows, .model = "m\"1"}, out);
  EXPECT_EQ(
      out,
      R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1]},)"
      R"({"object":"embedding","index":1,"embedding":[0.1,2],"truncated":true,"token_count":4}],)"
      R"("model":"m\"1","usage":{"prompt_tokens":7,"total_tokens":7}})");
}

TEST(OpenAiTest, RendersBase64) {
  const EncodedRows rows = TwoRows();
  std::string out;
  kOpenAiEmbeddings.render({.rows = rows, .model = "m", .encoding = VectorEncoding::kBase64}, out);
  // 0.5, -1.0 are 0x3F000000, 0xBF800000.
  EXPECT_THAT(out, HasSubstr(R"("embedding":"AAAAPwAAgL8=")"));
}

TEST(OpenAiTest, PutsAnErrorInThePlaceOfAFailedItem) {
  EncodedRows rows = TwoRows();
  rows.statuses[0] = Internal("device text");
  std::string out;
  kOpenAiEmbeddings.render({.rows = rows, .model = "m", .request_id = "r1"}, out);
  EXPECT_TRUE(JsonDocument::Parse(out, "answer").ok());
  EXPECT_THAT(out, HasSubstr(R"({"object":"error","index":0,"error":{"message":"internal error)"));
  EXPECT_THAT(out, HasSubstr(R"({"object":"embedding","index":1)"));
  EXPECT_THAT(out, Not(HasSubstr("device text")));
}

}  // namespace
}  // namespace bouquet::ivy::api
