#include "ivy/api/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace bouquet::ivy::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ErrorTest, MapsStatusCodesAsTheTableSays) {
  const auto openai = [](StatusCode code) { return HttpStatus(KindOf(code), Dialect::kOpenAi); };
  const auto tei = [](StatusCode code) { return HttpStatus(KindOf(code), Dialect::kTei); };
  EXPECT_EQ(openai(StatusCode::kCancelled), 499);
  EXPECT_EQ(openai(StatusCode::kUnknown), 500);
  EXPECT_EQ(openai(StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(tei(StatusCode::kInvalidArgument), 422);
  EXPECT_EQ(openai(StatusCode::kDeadlineExceeded), 504);
  EXPECT_EQ(openai(StatusCode::kNotFound), 404);
  EXPECT_EQ(openai(StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(openai(StatusCode::kFailedPrecondition), 400);
  EXPECT_EQ(tei(StatusCode::kFailedPrecondition), 422);
  EXPECT_EQ(openai(StatusCode::kOutOfRange), 413);
  EXPECT_EQ(openai(StatusCode::kUnimplemented), 501);
  EXPECT_EQ(openai(StatusCode::kInternal), 500);
  EXPECT_EQ(openai(StatusCode::kUnavailable), 503);
  EXPECT_EQ(openai(StatusCode::kUnauthenticated), 401);
}

TEST(ErrorTest, KeepsMalformedAndEmptyAt400InBothDialects) {
  for (const Dialect dialect : {Dialect::kOpenAi, Dialect::kTei}) {
    EXPECT_EQ(HttpStatus(ErrorKind::kMalformedBody, dialect), 400);
    EXPECT_EQ(HttpStatus(ErrorKind::kEmptyInput, dialect), 400);
  }
}

TEST(ErrorTest, RendersTheShapeOfOpenAi) {
  const Error error = {ErrorKind::kInvalidValue, "must be 1..384, not \"x\"", "dimensions"};
  EXPECT_EQ(RenderError(error, Dialect::kOpenAi, "id"),
            R"({"error":{"message":"dimensions: must be 1..384, not \"x\"",)"
            R"("type":"invalid_request_error","param":"dimensions","code":null}})");
  const Error model = {ErrorKind::kUnknownModel, "no such model", ""};
  EXPECT_EQ(RenderError(model, Dialect::kOpenAi, "id"),
            R"({"error":{"message":"no such model","type":"not_found_error","param":null,)"
            R"("code":"model_not_found"}})");
}

TEST(ErrorTest, RendersTheShapeOfTei) {
  EXPECT_EQ(
      RenderError({ErrorKind::kEmptyInput, "input is empty", "inputs[1]"}, Dialect::kTei, "id"),
      R"({"error":"inputs[1]: input is empty","error_type":"Empty"})");
  EXPECT_THAT(RenderError({ErrorKind::kOverCapacity, "full", ""}, Dialect::kTei, "id"),
              HasSubstr(R"("error_type":"Overloaded")"));
}

TEST(ErrorTest, HidesTheMessageOfInternalErrors) {
  for (const Dialect dialect : {Dialect::kOpenAi, Dialect::kTei}) {
    const std::string body =
        RenderError({ErrorKind::kInternal, "/secret/path", ""}, dialect, "req-7");
    EXPECT_THAT(body, Not(HasSubstr("secret")));
    EXPECT_THAT(body, HasSubstr("req-7"));
  }
}

TEST(ErrorTest, WritesValidJsonWhateverIsQuoted) {
  const Error error = {ErrorKind::kUnknownRoute, "no such route: /a\xFF\"\x01", "fi\xC3(eld"};
  for (const Dialect dialect : {Dialect::kOpenAi, Dialect::kTei}) {
    const std::string body = RenderError(error, dialect, "id");
    EXPECT_TRUE(JsonDocument::Parse(body, "error").ok()) << body;
    EXPECT_THAT(body, HasSubstr("/a?"));
  }
}

}  // namespace
}  // namespace bouquet::ivy::api
