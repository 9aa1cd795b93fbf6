#include "ivy/api/json_fault.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bouquet::ivy::api {
namespace {

using Kind = JsonFault::Kind;

void ExpectFault(std::string_view text, Kind kind, size_t offset, std::string_view path = "") {
  const std::optional<JsonFault> fault = FindJsonFault(text, 16);
  ASSERT_TRUE(fault.has_value()) << text;
  EXPECT_EQ(fault->kind, kind) << text << ": " << fault->what;
  EXPECT_EQ(fault->offset, offset) << text << ": " << fault->what;
  EXPECT_EQ(fault->path, path) << text;
}

TEST(JsonFaultTest, FindsNothingInSoundTexts) {
  for (const std::string_view text :
       {R"({})", R"([])", R"(  {"a" : [1, -2.5e3, true, false, null, "x\n\u00e9😀\ud83d\ude00"]}  )",
        R"("text")", "0", "-0", "1e-400", R"("\u0000")", "18446744073709551615",
        "-9223372036854775808"}) {
    EXPECT_FALSE(FindJsonFault(text, 16).has_value()) << text;
  }
}

TEST(JsonFaultTest, NamesTheByteOfASyntaxError) {
  ExpectFault("", Kind::kSyntax, 0);
  ExpectFault("   ", Kind::kSyntax, 3);
  ExpectFault(R"({"a":1)", Kind::kSyntax, 6);
  ExpectFault(R"({"a" 1})", Kind::kSyntax, 5);
  ExpectFault(R"({a:1})", Kind::kSyntax, 1);
  ExpectFault("[1,]", Kind::kSyntax, 3, "[1]");
  ExpectFault("[1] x", Kind::kSyntax, 4);
  ExpectFault("[01]", Kind::kSyntax, 1, "[0]");
  ExpectFault("[1.]", Kind::kSyntax, 1, "[0]");
  ExpectFault("[1e]", Kind::kSyntax, 1, "[0]");
  ExpectFault("[nul]", Kind::kSyntax, 1, "[0]");
  ExpectFault("[\"a\nb\"]", Kind::kSyntax, 3, "[0]");
  ExpectFault(R"(["\x"])", Kind::kSyntax, 2, "[0]");
  ExpectFault(R"(["\u12"])", Kind::kSyntax, 2, "[0]");
  ExpectFault(R"({"input": "abc)", Kind::kSyntax, 14, "input");
}

TEST(JsonFaultTest, NamesInputAndByteOfInvalidUtf8) {
  ExpectFault("{\"input\":[\"ok\",\"a\xFF\"]}", Kind::kUtf8, 17, "input[1]");
  ExpectFault("[\"\xC0\x80\"]", Kind::kUtf8, 2, "[0]");          // overlong
  ExpectFault("[\"\xED\xA0\x80\"]", Kind::kUtf8, 2, "[0]");      // a surrogate as bytes
  ExpectFault("[\"\xF4\x90\x80\x80\"]", Kind::kUtf8, 2, "[0]");  // above U+10FFFF
  ExpectFault("[\"\xE2\x82\"]", Kind::kUtf8, 2, "[0]");          // cut short
}

TEST(JsonFaultTest, NamesInputAndByteOfALoneSurrogate) {
  ExpectFault(R"({"input":["a","x\ud800y"]})", Kind::kLoneSurrogate, 16, "input[1]");
  ExpectFault(R"(["\udc00"])", Kind::kLoneSurrogate, 2, "[0]");
  ExpectFault(R"(["\udc00\ud800"])", Kind::kLoneSurrogate, 2, "[0]");
  ExpectFault(R"(["\ud800\u0041"])", Kind::kLoneSurrogate, 2, "[0]");
  ExpectFault(R"(["\ud83d","\ude00"])", Kind::kLoneSurrogate, 2, "[0]");
}

TEST(JsonFaultTest, CountsArraysAndObjectsInsideOneAnother) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  EXPECT_FALSE(FindJsonFault(nested(16), 16).has_value());
  const std::optional<JsonFault> fault = FindJsonFault(nested(17), 16);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Kind::kTooDeep);
  EXPECT_EQ(fault->offset, 16U);
}

TEST(JsonFaultTest, RefusesNumbersThatNoTypeHolds) {
  ExpectFault("[18446744073709551616]", Kind::kNumberRange, 1, "[0]");
  ExpectFault("[-9223372036854775809]", Kind::kNumberRange, 1, "[0]");
  const std::string zeros(400, '0');
  const std::vector<std::string> too_large = {"1e400", "-1E+400", "1" + zeros + ".5",
                                              "0." + zeros + "1e900", "1e99999999999999999999"};
  for (const std::string& number : too_large) {
    ExpectFault("[" + number + "]", Kind::kNumberRange, 1, "[0]");
  }
  const std::vector<std::string> tiny = {
      "1e-400", "0." + zeros + "1",        "1" + zeros + ".5e-900", "1e-99999999999999999999",
      "0e999",  "0.0e99999999999999999999"};
  for (const std::string& number : tiny) {
    EXPECT_FALSE(FindJsonFault("[" + number + "]", 16).has_value()) << number;
  }
}

}  // namespace
}  // namespace bouquet::ivy::api
