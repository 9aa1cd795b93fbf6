#include "text/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "testing/test_data.h"
#include "text/small_tokenizer.h"
#include "text/tokenizer_file.h"

namespace bouquet::text {
namespace {

using simdjson::dom::element;
using ::testing::HasSubstr;

Result<Decoder> Parse(std::string_view json) {
  const JsonDocument document = JsonDocument::Parse(json, "tokenizer.json").value();
  return ParseDecoder(JsonObject::From(document.root(), "tokenizer.json").value());
}

TEST(DecoderTest, EveryKindGivesTheReferenceTexts) {
  const JsonDocument golden =
      JsonDocument::ParseFile(testing::SourcePath("text/golden/decoders.json")).value();
  size_t count = 0;
  for (const element entry : golden.root()["decoders"]) {
    SCOPED_TRACE(simdjson::minify(entry["decoder"].value()));
    const Result<Decoder> decoder = ParseDecoder(JsonObject::From(entry, "golden").value());
    ASSERT_TRUE(decoder.ok()) << decoder.status().ToString();
    for (size_t i = 0; i < entry["texts"].get_array().size(); ++i) {
      std::vector<std::string> tokens;
      for (const element token : golden.root()["tokens"].at(i)) {
        tokens.emplace_back(token.get_string().value());
      }
      const std::string text = decoder.value().Decode(tokens).value();
      const element expected = entry["texts"].at(i).value();
      if (!expected.is_null()) {
        EXPECT_EQ(text, expected.get_string().value()) << i;
        ++count;
      }
    }
  }
  EXPECT_GT(count, 300U);
}

TEST(DecoderTest, RefusesWhatIsNotServedByName) {
  const auto error = [](std::string_view json) { return Parse(json).status().ToString(); };
  EXPECT_THAT(error(R"({"decoder": {"type": "Other"}})"), HasSubstr("Other"));
  EXPECT_THAT(
      error(R"({"decoder": {"type": "Replace", "pattern": {"Regex": "\\b"}, "content": ""}})"),
      HasSubstr("not served: \\b"));
  EXPECT_THAT(error(R"({"decoder": {"type": "BPEDecoder", "suffix": ""}})"), HasSubstr("suffix"));
  EXPECT_THAT(error(R"({"decoder": {"type": "Metaspace", "replacement": "ab"}})"),
              HasSubstr("one character"));
  EXPECT_THAT(error(R"({"decoder": {"type": "Sequence"}})"), HasSubstr("decoders"));
  EXPECT_THAT(error(R"({"decoder": {"type": "Strip", "content": "a", "start": -1, "stop": 0}})"),
              HasSubstr("start"));
}

/// `count` times: every "a" becomes two.
std::string Doublings(int count) {
  std::string stages;
  for (int i = 0; i < count; ++i) {
    stages += std::string(i > 0 ? "," : "") +
              R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  }
  return stages;
}

TEST(DecoderTest, StagesThatMakeTooMuchOfATokenAreAnError) {
  const auto decode = [](int doublings) {
    return Parse(R"({"decoder": {"type": "Sequence", "decoders": [)" + Doublings(doublings) + "]}}")
        .value()
        .Decode({"a"});
  };
  EXPECT_EQ(decode(16).value().size(), 65536U);
  EXPECT_THAT(decode(17).status().message(), HasSubstr("more than 65536 bytes"));
  EXPECT_FALSE(decode(60).ok());
}

TEST(DecoderTest, AFileWhoseDecoderIsNotServedStillEncodes) {
  const std::string json =
      SmallTokenizerWith(R"("decoder": {"type": "WordPiece")", R"("decoder": {"type": "Other")");
  const Result<TokenizerFile> file = ParseTokenizerJson(json, "small", false);
  ASSERT_TRUE(file.ok());
  const std::vector<int32_t> ids = {10};
  EXPECT_THAT(file.value().tokenizer->Decode(ids, {}).status().ToString(), HasSubstr("Other"));
}

TEST(DecoderTest, LeavesOutUnknownIdsAndOnRequestSpecialTokens) {
  const TokenizerFile file = ParseTokenizerJson(kSmallTokenizerJson, "small", false).value();
  const std::vector<int32_t> ids = {2, 30, -1, 31, 35, 7, 100000, 3};
  EXPECT_EQ(file.tokenizer->Decode(ids, {}).value(), "badage jade.");  // normalized: as looked for
  EXPECT_EQ(file.tokenizer->Decode(ids, {.skip_special_tokens = false}).value(),
            "[CLS] badage jade. [SEP]");
  EXPECT_EQ(file.tokenizer->Decode({}, {}).value(), "");
}

TEST(DecoderTest, CleansUpSpacesAsTheTransformersLibrary) {
  EXPECT_EQ(CleanUpSpaces("I 'm here , do n't you see ? it 's do not"),
            "I'm here, don't you see? it's do not");
}

}  // namespace
}  // namespace bouquet::text
