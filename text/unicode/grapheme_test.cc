#include "text/unicode/grapheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bouquet::text::unicode {
namespace {

using ::testing::ElementsAre;

std::vector<size_t> ClusterBytes(std::string_view text) {
  std::vector<size_t> sizes;
  while (!text.empty()) {
    sizes.push_back(FirstGraphemeCluster(text));
    text.remove_prefix(sizes.back());
  }
  return sizes;
}

TEST(GraphemeTest, KeepsMarksWithTheirBaseAndControlsAlone) {
  EXPECT_THAT(ClusterBytes("ab"), ElementsAre(1, 1));
  EXPECT_THAT(ClusterBytes("e\u0301\u0327x"), ElementsAre(5, 1));
  EXPECT_THAT(ClusterBytes("\n\u0301\r\n\r\r\n\u0301"), ElementsAre(1, 2, 2, 1, 2, 2));
  EXPECT_THAT(ClusterBytes("\u0600a\u0903b\u0600\n"), ElementsAre(6, 1, 2, 1));
}

TEST(GraphemeTest, KeepsHangulSyllablesTogether) {
  EXPECT_THAT(ClusterBytes("\u1100\u1161\u11A8\u1100"), ElementsAre(9, 3));
  EXPECT_THAT(ClusterBytes("\uAC00\u11A8\uAC00\u1161\u11A8"), ElementsAre(6, 9));
  EXPECT_THAT(ClusterBytes("\uAC01\u1161\uAC01\u11A8"), ElementsAre(3, 3, 6));
}

TEST(GraphemeTest, KeepsFlagsInPairsAndJoinedEmojiTogether) {
  EXPECT_THAT(ClusterBytes("\U0001F1E9\U0001F1EA\U0001F1E9"), ElementsAre(8, 4));
  EXPECT_THAT(ClusterBytes("\u0600\U0001F1E9\U0001F1EA\U0001F1E9"), ElementsAre(10, 4));
  EXPECT_THAT(ClusterBytes("\U0001F469\u200D\U0001F469\U0001F469"), ElementsAre(11, 4));
  EXPECT_THAT(ClusterBytes("\u00A9\u0301\u200D\u00A9"), ElementsAre(9));
  EXPECT_THAT(ClusterBytes("\u00A9\u200D\u200D\u00A9"), ElementsAre(8, 2));
  EXPECT_THAT(ClusterBytes("a\u200D\u00A9"), ElementsAre(4, 2));
}

TEST(GraphemeTest, KeepsLinkedConsonantsTogether) {
  EXPECT_THAT(ClusterBytes("\u0915\u094D\u0937"), ElementsAre(9));
  EXPECT_THAT(ClusterBytes("\u0915\u094D\u200D\u0937"), ElementsAre(12));
  EXPECT_THAT(ClusterBytes("\u0915\u093C\u094D\u0937\u0915"), ElementsAre(12, 3));
  EXPECT_THAT(ClusterBytes("\u0915\u0937"), ElementsAre(3, 3));
  EXPECT_THAT(ClusterBytes("\u0915\u200C\u094D\u0937"), ElementsAre(9, 3));
  EXPECT_THAT(ClusterBytes("a\u094D\u0937"), ElementsAre(4, 3));
}

}  // namespace
}  // namespace bouquet::text::unicode
