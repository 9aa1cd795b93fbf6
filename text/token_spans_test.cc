#include "text/token_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/test_data.h"
#include "text/encode_scratch.h"
#include "text/small_tokenizer.h"
#include "text/text_pipeline.h"
#include "text/tokenizer_file.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The passages of `text` that its tokens stand for.
std::vector<std::string> Passages(const std::string& json, std::string_view text) {
  const TokenizerFile file = ParseTokenizerJson(json, "small", false).value();
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  std::vector<int32_t> plain_ids;
  TokenSpans spans;
  EXPECT_TRUE(file.tokenizer->EncodeWithSpans(text, {}, scratch, ids, spans).ok());
  EXPECT_TRUE(file.tokenizer->Encode(text, {}, scratch, plain_ids).ok());
  EXPECT_EQ(ids, plain_ids);
  EXPECT_EQ(spans.spans.size(), ids.size());
  std::vector<std::string> passages;
  for (const ByteSpan& span : spans.spans) {
    passages.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return passages;
}

const std::string kBert(kSmallTokenizerJson);

TEST(TokenSpansTest, AreTheTextAsItWasBeforeItWasNormalized) {
  EXPECT_THAT(Passages(kBert, "B\u00C1D\u00C2GE c\u0301ab"),
              ElementsAre("BÁD", "ÂGE", "c\u0301ab"));
  EXPECT_THAT(Passages(kBert, "a中\x01国"), ElementsAre("a", "中", "国"));
  EXPECT_THAT(Passages(kBert, "ab zz c"), ElementsAre("a", "b", "zz", "c"));  // unknown: whole
}

TEST(TokenSpansTest, OfAddedTokensHoldTheWhitespaceThatTheyTake) {
  EXPECT_THAT(Passages(kBert, "a  [MASK] b Jade  c"),
              ElementsAre("a", "  [MASK]", "b", "Jade  ", "c"));
}

TEST(TokenSpansTest, OfTheBytesOfACharacterAreTheCharacter) {
  const std::string json = SmallBpeWith(R"("Ã©": 8})", R"("Â": 8, "ª": 9})");
  EXPECT_THAT(Passages(Replaced(json, R"(, "Ã ©")", ""), "é ª"),
              ElementsAre("é", "é", " ", "ª", "ª"));
  EXPECT_THAT(Passages(std::string(kSmallBpeJson), "e\u0301é ab"), ElementsAre("e", "é", " ab"));
}

TEST(TokenSpansTest, ASpaceThatIsPutInFrontStandsForTheFirstCharacter) {
  const std::string json =
      SmallBpeWith(R"("add_prefix_space": false, "trim_offsets": false, "use_regex": false)",
                   R"("add_prefix_space": true, "trim_offsets": false, "use_regex": false)");
  EXPECT_THAT(Passages(json, "ba"), ElementsAre("b", "b", "a"));
  EXPECT_THAT(Passages(json, "ab"), ElementsAre("ab"));
}

TEST(TokenSpansTest, AreCountedInCharacters) {
  EXPECT_THAT(CountedInCharacters("é中a", {{0, 2}, {2, 5}, {5, 6}, {0, 0}, {3, 6}}),
              ElementsAre(CharacterSpan{0, 1}, CharacterSpan{1, 2}, CharacterSpan{2, 3},
                          CharacterSpan{0, 0}, CharacterSpan{1, 3}));
  EXPECT_THAT(CountedInCharacters("", {{0, 0}}), ElementsAre(CharacterSpan{0, 0}));
}

TEST(TokenSpansTest, LoseCharactersAtTheirEndsDownToNothing) {
  const std::string_view text = "é\u3000ab  ";
  EXPECT_EQ(WithoutCharacters(text, {2, 9}, 1, 2), (ByteSpan{5, 7}));
  EXPECT_EQ(WithoutCharacters(text, {2, 5}, 3, 0), (ByteSpan{5, 5}));
  EXPECT_EQ(WithoutCharacters(text, {2, 5}, 0, 2), (ByteSpan{2, 2}));
  EXPECT_EQ(WithoutCharacters(text, {0, 2}, 0, 2), (ByteSpan{0, 2}));  // has not so many before it
}

class PipelineSpansTest : public ::testing::Test {
 protected:
  TokenSequence Encode(std::string_view json, std::string_view text, PipelineOptions options = {}) {
    options.with_spans = true;
    return Load(json)->Encode(text, options, scratch_).value();
  }
  Result<TokenSequence> EncodePair(std::string_view first, std::string_view second,
                                   PairTruncation truncation, int32_t max_tokens,
                                   TruncationSide side = TruncationSide::kRight) {
    PipelineOptions options = {.with_spans = true};
    options.length = {OverLength::kTruncate, side, max_tokens, truncation};
    return Load(kSmallTokenizerJson)->EncodePair(first, second, options, scratch_);
  }
  std::unique_ptr<TextPipeline> Load(std::string_view json) {
    WriteFile(folder_.path() / "tokenizer.json", json);
    return TextPipeline::Load(folder_.path(), false).value();
  }

  testing::TemporaryFolder folder_;
  EncodeScratch scratch_;
};

TEST_F(PipelineSpansTest, SpecialTokensStandForNothingAndAreMarked) {
  const TokenSequence sequence = Encode(kSmallTokenizerJson, "ab [SEP]");
  EXPECT_THAT(sequence.ids, ElementsAre(2, 10, 21, 3, 3));
  EXPECT_THAT(sequence.spans, ElementsAre(ByteSpan{0, 0}, ByteSpan{0, 1}, ByteSpan{1, 2},
                                          ByteSpan{3, 8}, ByteSpan{0, 0}));
  EXPECT_THAT(sequence.special_mask, ElementsAre(1, 0, 0, 0, 1));  // what the text says is text
}

TEST_F(PipelineSpansTest, AreNotFilledUnlessAskedFor) {
  const TokenSequence sequence = Load(kSmallTokenizerJson)->Encode("ab", {}, scratch_).value();
  EXPECT_TRUE(sequence.spans.empty());
  EXPECT_TRUE(sequence.special_mask.empty());
}

TEST_F(PipelineSpansTest, AreOfPromptAndTextAndAreCutWithTheTokens) {
  PipelineOptions options;
  options.prompt = "ab ";
  options.length = {OverLength::kTruncate, TruncationSide::kLeft, 5};
  const TokenSequence sequence = Encode(kSmallTokenizerJson, "c d e", options);
  EXPECT_THAT(sequence.ids, ElementsAre(2, 10, 21, 14, 3));
  EXPECT_THAT(sequence.spans, ElementsAre(ByteSpan{0, 0}, ByteSpan{0, 1}, ByteSpan{1, 2},
                                          ByteSpan{7, 8}, ByteSpan{0, 0}));
}

TEST_F(PipelineSpansTest, OfAPairAreEachOfItsText) {
  const TokenSequence sequence = EncodePair("a", "bc", PairTruncation::kLongestFirst, 0).value();
  EXPECT_THAT(sequence.ids, ElementsAre(2, 10, 3, 11, 22, 3));
  EXPECT_THAT(sequence.spans, ElementsAre(ByteSpan{0, 0}, ByteSpan{0, 1}, ByteSpan{0, 0},
                                          ByteSpan{0, 1}, ByteSpan{1, 2}, ByteSpan{0, 0}));
  EXPECT_THAT(sequence.special_mask, ElementsAre(1, 0, 1, 0, 0, 1));
}

TEST_F(PipelineSpansTest, PairsAreCutAsTheStrategySays) {
  const auto ids = [&](std::string_view first, std::string_view second, PairTruncation truncation,
                       TruncationSide side = TruncationSide::kRight) {
    return EncodePair(first, second, truncation, 7, side).value().ids;  // room for 4
  };
  using enum PairTruncation;
  EXPECT_THAT(ids("a b c", "d e f", kLongestFirst), ElementsAre(2, 10, 11, 3, 13, 14, 3));
  EXPECT_THAT(ids("a b c d", "e", kLongestFirst), ElementsAre(2, 10, 11, 12, 3, 14, 3));
  EXPECT_THAT(ids("a b c", "d e f", kOnlyFirst), ElementsAre(2, 10, 3, 13, 14, 15, 3));
  EXPECT_THAT(ids("a b c", "d e f", kOnlySecond), ElementsAre(2, 10, 11, 12, 3, 13, 3));
  EXPECT_THAT(ids("a b c", "d e f", kOnlySecond, TruncationSide::kLeft),
              ElementsAre(2, 10, 11, 12, 3, 15, 3));
  EXPECT_THAT(EncodePair("a", "b c d e f", kOnlyFirst, 7).status().ToString(),
              HasSubstr("no room"));
}

TEST_F(PipelineSpansTest, WhitespaceIsTrimmedWhereThePostProcessorSaysSo) {
  const std::string trims = SmallBpeWith(
      R"("post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false)",
      R"("post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true)");
  EXPECT_THAT(Encode(trims, "ab ab").spans, ElementsAre(ByteSpan{0, 2}, ByteSpan{3, 5}));
  EXPECT_THAT(Encode(trims, " ab").spans, ElementsAre(ByteSpan{1, 3}));
  const std::string prefixed =
      Replaced(trims, R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true)",
               R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true)");
  EXPECT_THAT(Encode(prefixed, " ab ab").spans, ElementsAre(ByteSpan{0, 3}, ByteSpan{4, 6}));
}

}  // namespace
}  // namespace bouquet::text
