#include "text/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string_view> Split(SplitPattern pattern, std::string_view text) {
  std::vector<std::string_view> pieces;
  SplitByPattern(pattern, text, pieces);
  return pieces;
}

TEST(SplitPatternTest, Gpt2KeepsASpaceWithWhatFollows) {
  const auto split = [](std::string_view text) { return Split(SplitPattern::kGpt2, text); };
  EXPECT_THAT(split("Hello  world 12 34!"), ElementsAre("Hello", " ", " world", " 12", " 34", "!"));
  EXPECT_THAT(split("it's I'M we'll 's"),
              ElementsAre("it", "'s", " I", "'", "M", " we", "'ll", " '", "s"));
  EXPECT_THAT(split("a\t\tb"), ElementsAre("a", "\t", "\t", "b"));
  EXPECT_THAT(split("a \n "), ElementsAre("a", " \n "));
  EXPECT_THAT(split("日本語2024年"), ElementsAre("日本語", "2024", "年"));
  EXPECT_THAT(split("  "), ElementsAre("  "));
  EXPECT_THAT(split(" "), ElementsAre(" "));
}

TEST(SplitPatternTest, QwenTakesDigitsOneByOneAndLineBreaksTogether) {
  const auto split = [](std::string_view text) { return Split(SplitPattern::kQwen2, text); };
  EXPECT_THAT(split("in 2024!\n\nIt'S"),
              ElementsAre("in", " ", "2", "0", "2", "4", "!\n\n", "It", "'S"));
  EXPECT_THAT(split("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(split("(word) -x"), ElementsAre("(word", ")", " -", "x"));
  EXPECT_THAT(split("\tx\ny"), ElementsAre("\tx", "\n", "y"));
  EXPECT_THAT(split("it'\u017F"), ElementsAre("it", "'\u017F"));  // a long s is an s
  EXPECT_THAT(split("a  "), ElementsAre("a", "  "));
}

TEST(SplitPatternTest, Llama3TakesThreeDigits) {
  EXPECT_THAT(Split(SplitPattern::kLlama3, "12345 67"), ElementsAre("123", "45", " ", "67"));
}

TEST(SplitPatternTest, KnowsExpressionsByTheirWholeText) {
  EXPECT_EQ(
      FindSplitPattern(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
      SplitPattern::kQwen2);
  EXPECT_EQ(FindSplitPattern(R"(\s+)"), std::nullopt);
  EXPECT_EQ(FindSplitPattern(""), std::nullopt);
}

TEST(SplitPatternTest, PiecesCoverEveryTextInOrder) {
  const std::string text = "'ll \u0301\u00A0\u2028x\u3000 \r\n\r'S \u0660\u0661 \U0001F600\n";
  for (const SplitPattern pattern :
       {SplitPattern::kGpt2, SplitPattern::kQwen2, SplitPattern::kLlama3}) {
    std::string joined;
    for (const std::string_view piece : Split(pattern, text)) {
      EXPECT_FALSE(piece.empty());
      joined += piece;
    }
    EXPECT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace bouquet::text
