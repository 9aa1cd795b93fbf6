#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex.h>

#include <random>
#include <string>
#include <vector>

#include "text/regex_translation.h"
#include "text/split_pattern.h"
#include "text/unicode/properties.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Matches(std::string_view expression, std::string_view text) {
  const auto regex = Regex::Compile(expression);
  EXPECT_TRUE(regex.ok()) << regex.status().ToString();
  std::vector<std::string> matches;
  std::string all;
  EXPECT_TRUE(ForEachSegment(*regex.value(), text, [&](std::string_view segment, bool is_match) {
                all += segment;
                if (is_match) {
                  matches.emplace_back(segment);
                }
              }).ok());
  EXPECT_EQ(all, text);
  return matches;
}

TEST(RegexTest, FindsMatchesFromLeftToRight) {
  EXPECT_THAT(Matches("a+", "aab ca"), ElementsAre("aa", "a"));
  EXPECT_THAT(Matches("a+", "bcd"), IsEmpty());
  EXPECT_THAT(Matches("a", ""), IsEmpty());
  EXPECT_THAT(Matches("(?i:ab)|(?<=x)y(?!z)", "aB xy xyz"), ElementsAre("aB", "y"));
  EXPECT_THAT(Matches("é|中", "aé中"), ElementsAre("é", "中"));
}

TEST(RegexTest, LeavesOutAnEmptyMatchBehindAnother) {
  EXPECT_THAT(Matches("x*", "axxb"), ElementsAre("", "xx", ""));
  EXPECT_THAT(Matches("(?=b)", "abb"), ElementsAre("", ""));
  EXPECT_THAT(Matches("x*", "é"), ElementsAre("", ""));
}

TEST(RegexTest, KnowsClassesOfAllKinds) {
  EXPECT_THAT(Matches(R"(\p{Lu}\p{Ll}+)", "Abc dE Éa"), ElementsAre("Abc", "Éa"));
  EXPECT_THAT(Matches(R"([^\s\p{L}\p{N}]+)", "a!? 1\u00A0-"), ElementsAre("!?", "-"));
  EXPECT_THAT(Matches(R"(\P{L}+|\p{^N})", "ab12"), ElementsAre("a", "b", "12"));
  EXPECT_THAT(Matches(R"([\p{Han}\p{hira_gana}]+)", "日本のカ"), ElementsAre("日本の"));
  EXPECT_THAT(Matches(R"(\d+|\W)", "a1\u0661 _"), ElementsAre("1\u0661", " "));
  EXPECT_THAT(Matches(R"(\w+)", "a½b"), ElementsAre("a½b"));
  EXPECT_THAT(Matches(R"([\w]+)", "a½²b¾"), ElementsAre("a", "b"));
  EXPECT_THAT(Matches(R"([\w.-]+)", "a-b.c d"), ElementsAre("a-b.c", "d"));
  EXPECT_THAT(Matches(R"((?i:\p{Lu}+))", "aBCd"), ElementsAre("BC"));  // (?i) is for sets
  EXPECT_THAT(Matches(R"((?i:[\p{Lu}]+))", "aBCd1"), ElementsAre("aBCd"));
  EXPECT_THAT(Matches(R"([]a]+|\[\\p)", "]a [\\p"), ElementsAre("]a", "[\\p"));
}

TEST(RegexTest, KnowsLettersThatAreNewerThanTheEngine) {
  // U+105C0, Todhri, is a letter since Unicode 16.
  EXPECT_THAT(Matches(R"(\p{L}+)", "a\U000105C0b"), ElementsAre("a\U000105C0b"));
  EXPECT_THAT(Matches(R"(\w+)", "a\U000105C0b"), ElementsAre("a\U000105C0b"));
}

TEST(RegexTest, RefusesMistakesAndWhatDependsOnTheVersionByName) {
  const auto error = [](std::string_view expression) {
    return Regex::Compile(expression).status().ToString();
  };
  EXPECT_THAT(error("a("), HasSubstr("mistake: end pattern with unmatched parenthesis: a("));
  EXPECT_THAT(error("[a"), HasSubstr("premature end of char-class"));
  EXPECT_THAT(error("a\\"), HasSubstr("ends in a backslash"));
  EXPECT_THAT(error(R"(\p{Klingon})"), HasSubstr(R"(this class is not served: \p{Klingon})"));
  EXPECT_THAT(error(R"(\pL)"), HasSubstr("without {Name}"));
  EXPECT_THAT(error(R"(\bword)"), HasSubstr(R"(this escape is not served: \b)"));
  EXPECT_THAT(error(R"(\X)"), HasSubstr(R"(\X)"));
  EXPECT_THAT(error("[[:alpha:]]"), HasSubstr("POSIX bracket"));
  EXPECT_THAT(error("(*FAIL)"), HasSubstr("callout"));
  EXPECT_THAT(error("(?{code})"), HasSubstr("group of this kind"));
  EXPECT_THAT(error("(?a\u00E9\u4E00"), HasSubstr("not served: (?a\u00E9, in"));
  EXPECT_THAT(error("(?x) a b"), HasSubstr("(?x)"));
  EXPECT_THAT(error(R"([a-\w])"), HasSubstr("behind '-'"));
  EXPECT_THAT(error(R"([\w-z])"), HasSubstr("before '-'"));
  EXPECT_THAT(error("\xFF"), HasSubstr("UTF-8"));
  EXPECT_THAT(error(std::string(Regex::kMaxExpressionBytes + 1, 'a')), HasSubstr("65536"));
}

TEST(RegexTest, GivesUpOnAnExpressionThatBacktracksWithoutEnd) {
  const auto regex = Regex::Compile("(a+a+)+b").value();
  const std::string text = "b" + std::string(40, 'a');
  RegexMatches matches(*regex, text);
  EXPECT_FALSE(matches.Next().has_value());
  EXPECT_EQ(matches.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(matches.status().message(), HasSubstr("from byte 0 on"));
  EXPECT_THAT(matches.status().message(), HasSubstr("(a+a+)+b"));
}

TEST(RegexTest, GivesUpWhereItWouldNeedMoreMemoryThanItsLimit) {
  const auto regex = Regex::Compile("(?:a|b)*c").value();
  const std::string text = std::string(1 << 24, 'a') + "dc";
  RegexMatches matches(*regex, text);
  EXPECT_FALSE(matches.Next().has_value());
  EXPECT_THAT(matches.status().message(), HasSubstr("open choices"));
}

TEST(RegexTest, PosixExpressionsOfTheProcessAreTheCLibrarys) {
  regex_t compiled;
  ASSERT_EQ(regcomp(&compiled, "()", REG_EXTENDED), 0);
  regmatch_t match;
  EXPECT_EQ(regexec(&compiled, "", 1, &match, 0), 0);  // an error by Oniguruma's
  regfree(&compiled);
}

// The matchers of split_pattern.h against the expressions that they stand for.

constexpr std::pair<SplitPattern, std::string_view> kKnown[] = {
    {SplitPattern::kGpt2,
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitPattern::kQwen2, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                           R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {SplitPattern::kLlama3, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                            R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

/// A character that takes part in one of the expressions, or any other.
std::string RandomCharacter(std::mt19937& random) {
  constexpr std::string_view kParts[] = {
      "'",    "s", "S", "ll", "LL", "re", "V", "e",  "\u017F", " ",      "  ", "\t", "\n",
      "\r\n", "7", "1", "x",  "É",  "!",  "_", "中", "٣",      "\u00A0", "½",  "ⅷ",  "\u0301"};
  constexpr size_t kNumParts = std::size(kParts);
  const size_t choice = random() % (kNumParts + 4);
  if (choice < kNumParts) {
    return std::string(kParts[choice]);
  }
  auto c = static_cast<char32_t>(random() % 0x110000);
  c = c >= 0xD800 && c < 0xE000 ? U'a' : c;
  std::string text;
  unicode::Append(c, text);
  return text;
}

TEST(RegexTest, MatchersByHandCutEveryTextAsTheirExpressionsDo) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const auto& [pattern, expression] : kKnown) {
    ASSERT_EQ(FindSplitPattern(expression), pattern);
    const auto regex = Regex::Compile(expression).value();
    for (int i = 0; i < 20'000; ++i) {
      std::string text;
      for (size_t length = random() % 24; length > 0; --length) {
        text += RandomCharacter(random);
      }
      std::vector<std::string_view> by_hand;
      SplitByPattern(pattern, text, by_hand);
      std::vector<std::string_view> by_engine;
      ASSERT_TRUE(ForEachSegment(*regex, text, [&](std::string_view segment, bool is_match) {
                    EXPECT_TRUE(is_match);
                    by_engine.push_back(segment);
                  }).ok());
      ASSERT_EQ(by_hand, by_engine) << expression << "\n" << ::testing::PrintToString(text);
    }
  }
}

TEST(RegexTest, ClassesAreThoseOfThePropertyTables) {
  const auto letter = Regex::Compile(R"(\p{L})").value();
  const auto number = Regex::Compile(R"(\p{N})").value();
  const auto space = Regex::Compile(R"(\s)").value();
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) {
      c = 0xE000;
    }
    std::string text;
    unicode::Append(c, text);
    const auto matches = [&](const Regex& regex) {
      return RegexMatches(regex, text).Next().has_value();
    };
    ASSERT_EQ(matches(*letter), unicode::Has(c, unicode::kRegexLetter)) << uint32_t{c};
    ASSERT_EQ(matches(*number), unicode::Has(c, unicode::kRegexNumber)) << uint32_t{c};
    ASSERT_EQ(matches(*space), unicode::Has(c, unicode::kRegexSpace)) << uint32_t{c};
  }
}

}  // namespace
}  // namespace bouquet::text
