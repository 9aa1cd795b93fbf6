#include "text/text_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/test_data.h"
#include "text/small_tokenizer.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TextPipelineTest : public ::testing::Test {
 protected:
  TextPipelineTest() { WriteFile(folder_.path() / "tokenizer.json", kSmallTokenizerJson); }

  std::unique_ptr<TextPipeline> Load() const {
    return TextPipeline::Load(folder_.path(), false).value();
  }
  TokenSequence Encode(std::string_view text, const PipelineOptions& options = {}) {
    Result<TokenSequence> sequence = Load()->Encode(text, options, scratch_);
    EXPECT_TRUE(sequence.ok()) << sequence.status().ToString();
    return sequence.ok() ? std::move(sequence).value() : TokenSequence{};
  }
  TokenSequence EncodePair(std::string_view first, std::string_view second,
                           const PipelineOptions& options = {}) {
    Result<TokenSequence> sequence = Load()->EncodePair(first, second, options, scratch_);
    EXPECT_TRUE(sequence.ok()) << sequence.status().ToString();
    return sequence.ok() ? std::move(sequence).value() : TokenSequence{};
  }
  Status Error(std::string_view text, const PipelineOptions& options) {
    return Load()->Encode(text, options, scratch_).status();
  }

  testing::TemporaryFolder folder_;
  EncodeScratch scratch_;
};

LengthPolicy Truncate(int32_t max_tokens, TruncationSide side = TruncationSide::kRight) {
  return {.over_length = OverLength::kTruncate, .side = side, .max_tokens = max_tokens};
}

TEST_F(TextPipelineTest, PutsSpecialTokensAroundTheTextAndIgnoresLengthSettingsOfTheFile) {
  const TokenSequence sequence = Encode("Bad CABbage.");
  EXPECT_THAT(sequence.ids, ElementsAre(2, 30, 32, 21, 31, 7, 3));
  EXPECT_THAT(sequence.type_ids, IsEmpty());
  EXPECT_EQ(sequence.untruncated_tokens, 7);
  EXPECT_FALSE(sequence.truncated());
  EXPECT_EQ(Load()->num_special_tokens(), 2);
}

TEST_F(TextPipelineTest, LeavesSpecialTokensOutWhenAsked) {
  EXPECT_THAT(Encode("a", {.add_special_tokens = false}).ids, ElementsAre(10));
  EXPECT_THAT(Encode(" \t", {.add_special_tokens = false}).ids, IsEmpty());
  EXPECT_THAT(Encode(" \t").ids, ElementsAre(2, 3));
}

TEST_F(TextPipelineTest, ReadsSpecialTokensInTextAsTextWhenAsked) {
  EXPECT_THAT(Encode("a [SEP] b").ids, ElementsAre(2, 10, 3, 11, 3));
  EXPECT_THAT(Encode("a [SEP] b", {.parse_special = false}).ids,
              ElementsAre(2, 10, 8, 1, 9, 11, 3));
  // Added tokens that are not special stay tokens.
  EXPECT_THAT(Encode("a JADE  b", {.parse_special = false}).ids, ElementsAre(2, 10, 35, 11, 3));
}

TEST_F(TextPipelineTest, TruncatesTheTextAndKeepsSpecialTokens) {
  const TokenSequence right = Encode("a b c d e", {.length = Truncate(5)});
  EXPECT_THAT(right.ids, ElementsAre(2, 10, 11, 12, 3));
  EXPECT_EQ(right.untruncated_tokens, 7);
  EXPECT_TRUE(right.truncated());
  EXPECT_THAT(Encode("a b c d e", {.length = Truncate(5, TruncationSide::kLeft)}).ids,
              ElementsAre(2, 12, 13, 14, 3));
  EXPECT_FALSE(Encode("a b c", {.length = Truncate(5)}).truncated());
}

TEST_F(TextPipelineTest, TruncationOnEitherSideKeepsThePrompt) {
  PipelineOptions options = {.length = Truncate(6), .prompt = "j i "};
  EXPECT_THAT(Encode("a b c d e", options).ids, ElementsAre(2, 19, 18, 10, 11, 3));
  options.length.side = TruncationSide::kLeft;
  EXPECT_THAT(Encode("a b c d e", options).ids, ElementsAre(2, 19, 18, 13, 14, 3));
}

TEST_F(TextPipelineTest, RefusesTruncationThatLeavesNoRoomForTheText) {
  const Status specials = Error("a", {.length = Truncate(2)});
  EXPECT_EQ(specials.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(specials.message(), HasSubstr("no room"));
  const Status prompt = Error("a b", {.length = Truncate(4), .prompt = "j i "});
  EXPECT_EQ(prompt.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(prompt.message(), HasSubstr("2 of the prompt, limit 4"));
}

TEST_F(TextPipelineTest, RefusesOverLongTextWithCountAndLimit) {
  const PipelineOptions options = {.length = {.over_length = OverLength::kError, .max_tokens = 4}};
  EXPECT_EQ(Encode("a b", options).ids.size(), 4U);
  const Status status = Error("a b c", options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "input is longer than the model allows: 5 tokens, limit 4");
}

TEST_F(TextPipelineTest, JoinsThePromptToTheTextBeforeTokenizing) {
  const TokenSequence sequence =
      Encode("age b", {.prompt = "bad cabb", .exclude_prompt_from_pooling = true});
  EXPECT_THAT(sequence.ids, ElementsAre(2, 30, 32, 21, 31, 11, 3));
  EXPECT_EQ(sequence.pooling_start, 4);  // [CLS], and the three tokens of the prompt by itself
  EXPECT_EQ(Encode("b", {.prompt = "a "}).pooling_start, 0);
  EXPECT_EQ(Encode("b", {.exclude_prompt_from_pooling = true}).pooling_start, 0);
  EXPECT_EQ(
      Encode("b",
             {.prompt = "a ", .exclude_prompt_from_pooling = true, .add_special_tokens = false})
          .pooling_start,
      1);
}

TEST_F(TextPipelineTest, RefusesTextWithNothingToPoolBesideThePrompt) {
  const Status status =
      Error(" ", {.prompt = "a", .exclude_prompt_from_pooling = true, .add_special_tokens = false});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST_F(TextPipelineTest, NamesTheByteWhereUtf8Breaks) {
  const auto message = [&](std::string_view text) {
    const Status status = Error(text, {});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(message("abcdefghi\xFF"), "text is not valid UTF-8: byte offset 9");
  EXPECT_EQ(message("\xC3"), "text is not valid UTF-8: byte offset 0");
  EXPECT_EQ(message("a\xED\xA0\x80"), "text is not valid UTF-8: byte offset 1");
  EXPECT_THAT(Error("a", {.prompt = "\x80"}).message(), HasSubstr("prompt is not valid UTF-8"));
  EXPECT_EQ(Load()->EncodePair("a", "\x80", {}, scratch_).code(), StatusCode::kInvalidArgument);
}

TEST_F(TextPipelineTest, KeepsNulAsACharacterOfTheText) {
  using namespace std::string_view_literals;
  EXPECT_THAT(Encode("ba\0d"sv).ids, ElementsAre(2, 30, 3));  // BERT's cleaning drops it
}

TEST_F(TextPipelineTest, GivesPairsTheTypesOfTheTemplate) {
  const TokenSequence pair = EncodePair("a b", "c");
  EXPECT_THAT(pair.ids, ElementsAre(2, 10, 11, 3, 12, 3));
  EXPECT_THAT(pair.type_ids, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_EQ(pair.untruncated_tokens, 6);
}

TEST_F(TextPipelineTest, CutsTheSecondTextOfAPairFirst) {
  const TokenSequence pair = EncodePair("a b", "c d e f g h i j", {.length = Truncate(9)});
  EXPECT_THAT(pair.ids, ElementsAre(2, 10, 11, 3, 12, 13, 14, 15, 3));
  EXPECT_THAT(pair.type_ids, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_EQ(pair.untruncated_tokens, 13);
}

TEST_F(TextPipelineTest, LeavesTheFirstTextThreeQuartersOfTheRoomWhenBothAreLong) {
  const std::string_view eight = "a b c d e f g h";
  EXPECT_THAT(EncodePair(eight, eight, {.length = Truncate(11)}).ids,
              ElementsAre(2, 10, 11, 12, 13, 14, 15, 3, 10, 11, 3));
  // A short second text leaves it more.
  EXPECT_THAT(EncodePair(eight, "j", {.length = Truncate(11)}).ids,
              ElementsAre(2, 10, 11, 12, 13, 14, 15, 16, 3, 19, 3));
  EXPECT_THAT(EncodePair(eight, eight, {.length = Truncate(7, TruncationSide::kLeft)}).ids,
              ElementsAre(2, 15, 16, 17, 3, 17, 3));
  EXPECT_EQ(Load()->EncodePair(eight, eight, {.length = Truncate(4)}, scratch_).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(TextPipelineTest, TakesIdsVerbatim) {
  const auto pipeline = Load();
  const PipelineOptions cut = {.length = Truncate(2)};
  const PipelineOptions cut_left = {.length = Truncate(2, TruncationSide::kLeft)};
  EXPECT_THAT(pipeline->TakeIds({7, 8, 9}, {}).value().ids, ElementsAre(7, 8, 9));
  EXPECT_THAT(pipeline->TakeIds({7, 8, 9}, cut).value().ids, ElementsAre(7, 8));
  EXPECT_THAT(pipeline->TakeIds({7, 8, 9}, cut_left).value().ids, ElementsAre(8, 9));
  EXPECT_EQ(pipeline->TakeIds({7, 8, 9}, cut).value().untruncated_tokens, 3);
  EXPECT_EQ(pipeline->TakeIds({7, 8, 9}, {.length = {.max_tokens = 2}}).status().message(),
            "input is longer than the model allows: 3 tokens, limit 2");
}

TEST_F(TextPipelineTest, GivesPiecesByIdAndTheVocabularySize) {
  const auto pipeline = Load();
  EXPECT_EQ(pipeline->tokenizer().Piece(31), "##age");
  EXPECT_EQ(pipeline->tokenizer().Piece(35), "Jade");
  EXPECT_EQ(pipeline->tokenizer().Piece(36), "");
  EXPECT_EQ(pipeline->tokenizer().Piece(-1), "");
  EXPECT_EQ(pipeline->tokenizer().vocabulary_size(), 36);
}

TEST_F(TextPipelineTest, LowercasesFirstUnlessTheNormalizerDoes) {
  EXPECT_THAT(
      TextPipeline::Load(folder_.path(), true).value()->Encode("BAD", {}, scratch_).value().ids,
      ElementsAre(2, 30, 3));
  WriteFile(folder_.path() / "tokenizer.json",
            SmallTokenizerWith("\"strip_accents\": null, \"lowercase\": true",
                               "\"strip_accents\": null, \"lowercase\": false"));
  EXPECT_THAT(Encode("BAD").ids, ElementsAre(2, 1, 3));
  EXPECT_THAT(
      TextPipeline::Load(folder_.path(), true).value()->Encode("BAD", {}, scratch_).value().ids,
      ElementsAre(2, 30, 3));
}

}  // namespace
}  // namespace bouquet::text
