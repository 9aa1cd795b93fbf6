#include "ivy/handlers/resolve_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::ivy {
namespace {

using ::testing::HasSubstr;

class ResolveRequestTest : public ::testing::Test {
 protected:
  ResolveRequestTest() {
    folder_.pipeline.width = 384;
    folder_.pipeline.ends_normalized = true;
    folder_.max_input_tokens = 256;
    folder_.prompts.by_name = {{"passage", "p: "}, {"query", "q: "}};
    request_.inputs = {std::string("text")};
    request_.inputs_field = "input";
  }

  EncodeRequest Resolved() {
    Result<EncodeRequest> result = ResolveRequest(request_, folder_, config_);
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? *result : EncodeRequest();
  }

  void ExpectRefused(std::string_view field, std::string_view part) {
    const Result<EncodeRequest> result = ResolveRequest(request_, folder_, config_);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(result.status().field(), field);
    EXPECT_THAT(result.status().message(), HasSubstr(part));
  }

  model::ModelFolder folder_;
  Config config_;
  api::Request request_;
};

TEST_F(ResolveRequestTest, FillsInTheModelsOwnDefaults) {
  EncodeRequest encode = Resolved();
  EXPECT_EQ(encode.output.dimensions, 384U);
  EXPECT_TRUE(encode.output.normalize);
  EXPECT_EQ(encode.prompt, "");
  EXPECT_EQ(encode.max_tokens, 256);
  EXPECT_EQ(encode.over_length, text::OverLength::kError);
  folder_.pipeline.ends_normalized = false;
  folder_.truncate_dim = 128;
  folder_.prompts.default_name = "query";
  encode = Resolved();
  EXPECT_FALSE(encode.output.normalize);
  EXPECT_EQ(encode.output.dimensions, 128U);
  EXPECT_EQ(encode.prompt, "q: ");
  request_.normalize = true;
  request_.prompt = "";
  encode = Resolved();
  EXPECT_TRUE(encode.output.normalize);
  EXPECT_EQ(encode.prompt, "");
}

TEST_F(ResolveRequestTest, HoldsDimensionsToTheModelsWidth) {
  for (const int64_t good : {1, 384}) {
    request_.dimensions = good;
    EXPECT_EQ(Resolved().output.dimensions, good);
  }
  for (const int64_t bad : {0, -1, 385}) {
    request_.dimensions = bad;
    ExpectRefused("dimensions", "1..384");
  }
}

TEST_F(ResolveRequestTest, FindsPromptsByName) {
  request_.prompt_name = "passage";
  EXPECT_EQ(Resolved().prompt, "p: ");
  request_.prompt_name = "document";
  ExpectRefused("prompt_name", "passage, query");
  folder_.prompts.by_name.clear();
  ExpectRefused("prompt_name", "it has: none");
}

TEST_F(ResolveRequestTest, LetsTheRequestBeatTheFlagAndTheFlagTheDialect) {
  using text::OverLength;
  struct Case {
    OverLengthPolicy flag;
    OverLength dialect;
    std::optional<bool> truncate;
    std::optional<int64_t> max_tokens;
    OverLength expected;
  };
  for (const Case& one : std::vector<Case>{
           {OverLengthPolicy::kDialect, OverLength::kError, {}, {}, OverLength::kError},
           {OverLengthPolicy::kDialect, OverLength::kTruncate, {}, {}, OverLength::kTruncate},
           {OverLengthPolicy::kError, OverLength::kTruncate, {}, {}, OverLength::kError},
           {OverLengthPolicy::kTruncate, OverLength::kError, {}, {}, OverLength::kTruncate},
           {OverLengthPolicy::kError, OverLength::kError, true, {}, OverLength::kTruncate},
           {OverLengthPolicy::kTruncate, OverLength::kTruncate, false, {}, OverLength::kError},
           {OverLengthPolicy::kError, OverLength::kError, {}, -1, OverLength::kTruncate},
           {OverLengthPolicy::kError, OverLength::kError, {}, 10, OverLength::kTruncate},
       }) {
    config_.over_length = one.flag;
    request_.dialect_over_length = one.dialect;
    request_.truncate = one.truncate;
    request_.max_tokens = one.max_tokens;
    EXPECT_EQ(Resolved().over_length, one.expected);
  }
}

TEST_F(ResolveRequestTest, LetsAFlagAndARequestOnlyLowerTheLongestInput) {
  config_.max_input_tokens = 100;
  EXPECT_EQ(Resolved().max_tokens, 100);
  config_.max_input_tokens = 1000;
  EXPECT_EQ(Resolved().max_tokens, 256);
  request_.max_tokens = 20;
  EXPECT_EQ(Resolved().max_tokens, 20);
  request_.max_tokens = -1;
  EXPECT_EQ(Resolved().max_tokens, 256);
  request_.max_tokens = 257;
  ExpectRefused("truncate_prompt_tokens", "at most 256");
}

}  // namespace
}  // namespace bouquet::ivy
