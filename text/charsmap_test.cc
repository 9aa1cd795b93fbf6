#include "text/charsmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/small_charsmap.h"
#include "text/source_map.h"

namespace bouquet::text {
namespace {

using ::testing::HasSubstr;

std::string Normalized(const Charsmap& map, std::string_view text) {
  std::string out = "left over";
  std::vector<int32_t> claims;
  map.Normalize(text, claims, NoSources(), out);
  return out;
}

TEST(CharsmapTest, ReplacesCharactersAndLeavesOthersAlone) {
  const Charsmap map = Charsmap::Parse(SmallCharsmapBlob()).value();
  EXPECT_EQ(Normalized(map, ""), "");
  EXPECT_EQ(Normalized(map, "plain text. \xE4\xB8\xAD"), "plain text. \xE4\xB8\xAD");
  EXPECT_EQ(Normalized(map, "ABA\tb\u3000\uFB01x"), "aBa b fix");
  EXPECT_EQ(Normalized(map, "a\x01z"), "az");
  EXPECT_EQ(Normalized(map, std::string_view("a\0A", 3)), std::string_view("a\0a", 3));
  EXPECT_EQ(Normalized(map, "kj"), "Kj");  // two clusters, so the longer rule never applies
}

TEST(CharsmapTest, ReplacesAWholeClusterOfFewerThanSixBytesByItsFirstMatch) {
  const Charsmap map = Charsmap::Parse(SmallCharsmapBlob()).value();
  EXPECT_EQ(Normalized(map, "xe\u0301y"), "x\u00E9y");
  EXPECT_EQ(Normalized(map, "A\u0301y"), "ay");           // the accent goes with it
  EXPECT_EQ(Normalized(map, "e\u0301\u0327"), "\u00E9");  // 5 bytes
  EXPECT_EQ(Normalized(map, "e\u0301\u0327\u0300"), "e\u0301\u0327\u0300");  // 7: one by one
  EXPECT_EQ(Normalized(map, "A\u0301\u0327\u0300"), "a\u0301\u0327\u0300");
  EXPECT_EQ(Normalized(map, "\r\n|\r|\n"), " | |\n");
  EXPECT_EQ(Normalized(map, "\u00A9\u200D"), "(c)");
  EXPECT_EQ(Normalized(map, "\u00A9\u200D\u00A9"), "(c)(c)");
  EXPECT_EQ(Normalized(map, "\uFF76\uFF9E"), "\uFF76\uFF9E");  // 6 bytes: its rule never applies
}

TEST(CharsmapTest, RefusesBlobsThatAreCutOffOrPointOutside) {
  const std::string blob = SmallCharsmapBlob();
  const auto error = [](const std::string& bytes) { return Charsmap::Parse(bytes).status(); };
  EXPECT_THAT(error("").message(), HasSubstr("too short for a header"));
  EXPECT_THAT(error(std::string(4, '\0')).message(), HasSubstr("its array should have 0 bytes"));
  EXPECT_THAT(error(blob.substr(0, 1000)).message(), HasSubstr("996 bytes follow"));
  EXPECT_THAT(error(blob + "\xFF").message(), HasSubstr("not UTF-8"));
  // No replacements at all, so every value but 0 lies outside.
  std::string no_replacements = blob;
  no_replacements.resize(4 + static_cast<unsigned char>(blob[0]) +
                         256 * static_cast<unsigned char>(blob[1]));
  EXPECT_THAT(error(no_replacements).message(), HasSubstr("a replacement at byte"));
  // The root's children beyond the end.
  std::string far = blob;
  far[6] = '\x7F';
  EXPECT_THAT(error(far).message(), HasSubstr("a node has children at"));
}

TEST(CharsmapTest, DecodesBase64AndRefusesWhatIsNot) {
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("TQ=="), "M");
  EXPECT_EQ(DecodeBase64("TWE="), "Ma");
  EXPECT_EQ(DecodeBase64("TWFu"), "Man");
  EXPECT_EQ(DecodeBase64("+/+/"), "\xFB\xFF\xBF");
  EXPECT_EQ(DecodeBase64(Base64(SmallCharsmapBlob())), SmallCharsmapBlob());
  for (const char* wrong : {"T", "TQ", "TQ=", "TR==", "T=Q=", "====", "TW u", "TW\nFu", "TWF-"}) {
    EXPECT_FALSE(DecodeBase64(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace bouquet::text
