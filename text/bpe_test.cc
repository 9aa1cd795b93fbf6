#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "text/byte_level.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int32_t> Encode(const Bpe& bpe, std::string_view piece) {
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  bpe.Encode(piece, scratch, ids, nullptr);
  return ids;
}

std::vector<ByteSpan> Spans(const Bpe& bpe, std::string_view piece) {
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  std::vector<ByteSpan> spans;
  bpe.Encode(piece, scratch, ids, &spans);
  EXPECT_EQ(ids, Encode(bpe, piece));
  return spans;
}

/// Characters a to e, and what is merged of them.
BpeSpec SmallSpec() {
  BpeSpec spec;
  spec.tokens = {{"a", 0},  {"b", 1},   {"c", 2},  {"ab", 3},
                 {"bc", 4}, {"abc", 5}, {"aa", 6}, {"?", 7}};
  spec.merges = {{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"a", "a"}};
  return spec;
}

std::unique_ptr<Bpe> Make(const BpeSpec& spec) {
  Result<std::unique_ptr<Bpe>> bpe = Bpe::Create(spec);
  EXPECT_TRUE(bpe.ok()) << bpe.status().ToString();
  return std::move(bpe).value();
}

TEST(BpeTest, MergesTheLowestRankFirstAndOfEqualsTheLeftmost) {
  const auto bpe = Make(SmallSpec());
  EXPECT_THAT(Encode(*bpe, "abc"), ElementsAre(0, 4));  // b c before a b
  EXPECT_THAT(Encode(*bpe, "aaa"), ElementsAre(6, 0));  // the left pair
  EXPECT_THAT(Encode(*bpe, "abab"), ElementsAre(3, 3));
  EXPECT_THAT(Encode(*bpe, "c"), ElementsAre(2));
}

// The ids of the next two are the reference's.
TEST(BpeTest, MergesByIdWhereTokensShareOne) {
  BpeSpec spec;
  spec.tokens = {{"a", 0}, {"b", 1}, {"c", 1}, {"ab", 2}, {"abc", 2}};
  spec.merges = {{"a", "b"}};
  for (const bool byte_level : {false, true}) {
    spec.byte_level = byte_level;
    const auto bpe = Make(spec);
    EXPECT_THAT(Encode(*bpe, "ab"), ElementsAre(2));
    EXPECT_THAT(Encode(*bpe, "ac"), ElementsAre(2));
    EXPECT_THAT(Encode(*bpe, "abc"), ElementsAre(2, 1));  // though "ab" has been one token
    EXPECT_THAT(Encode(*bpe, "aab"), ElementsAre(0, 2));
    EXPECT_THAT(Encode(*bpe, "acb"), ElementsAre(2, 1));
  }
  spec.tokens = {{"a", 0}, {"b", 1}, {"ab", 0}};  // goes round in a circle
  spec.byte_level = false;
  EXPECT_THAT(Encode(*Make(spec), "abbb"), ElementsAre(0));
  EXPECT_THAT(Encode(*Make(spec), "aab" + std::string(1000, 'b')), ElementsAre(0, 0));
}

TEST(BpeTest, OfAMergeThatIsListedTwiceTheLastRankCounts) {
  BpeSpec spec;
  spec.tokens = {{"a", 0}, {"b", 1}, {"ab", 2}, {"bb", 3}, {"abb", 4}};
  spec.merges = {{"a", "b"}, {"b", "b"}, {"ab", "b"}, {"a", "b"}};
  const auto bpe = Make(spec);
  EXPECT_THAT(Encode(*bpe, "abb"), ElementsAre(0, 3));
  EXPECT_THAT(Encode(*bpe, "abbb"), ElementsAre(0, 3, 1));
}

TEST(BpeTest, AWholePieceIsTakenAsATokenOnlyIfMergesMakeItUnlessToldSo) {
  BpeSpec spec = SmallSpec();
  const auto merged = Make(spec);
  // Twice: what is found out at first is remembered.
  EXPECT_THAT(Encode(*merged, "abc"), ElementsAre(0, 4));
  EXPECT_THAT(Encode(*merged, "abc"), ElementsAre(0, 4));
  EXPECT_THAT(Encode(*merged, "ab"), ElementsAre(3));
  EXPECT_THAT(Encode(*merged, "ab"), ElementsAre(3));
  spec.ignore_merges = true;
  EXPECT_THAT(Encode(*Make(spec), "abc"), ElementsAre(5));
}

TEST(BpeTest, WhatTheVocabularyLacksIsDroppedOrUnknown) {
  BpeSpec spec = SmallSpec();
  EXPECT_THAT(Encode(*Make(spec), "axb"), ElementsAre(3));  // neighbours then
  EXPECT_THAT(Encode(*Make(spec), "xyz"), IsEmpty());
  spec.unknown_token = "?";
  EXPECT_THAT(Encode(*Make(spec), "xaéy"), ElementsAre(7, 0, 7, 7));
  spec.fuse_unknown = true;
  EXPECT_THAT(Encode(*Make(spec), "xaéy"), ElementsAre(7, 0, 7));
}

TEST(BpeTest, SpansCoverWhatTheTokensStandFor) {
  BpeSpec spec = SmallSpec();
  EXPECT_THAT(Spans(*Make(spec), "abcab"),
              ElementsAre(ByteSpan{0, 1}, ByteSpan{1, 3}, ByteSpan{3, 5}));
  EXPECT_THAT(Spans(*Make(spec), "éab"), ElementsAre(ByteSpan{0, 2}));  // lags, as in the reference
  EXPECT_THAT(Spans(*Make(spec), "xyz"), IsEmpty());
  const auto twice = Make(spec);
  EXPECT_EQ(Spans(*twice, "ab"), Spans(*twice, "ab"));  // the second time from what is remembered
  spec.unknown_token = "?";
  EXPECT_THAT(Spans(*Make(spec), "xaéy"),
              ElementsAre(ByteSpan{0, 1}, ByteSpan{1, 2}, ByteSpan{2, 4}, ByteSpan{4, 5}));
  spec.fuse_unknown = true;
  EXPECT_THAT(Spans(*Make(spec), "xaéy"),
              ElementsAre(ByteSpan{0, 1}, ByteSpan{1, 2}, ByteSpan{2, 5}));
}

TEST(BpeTest, FallsBackToBytesWhereAllOfACharacterHaveTokens) {
  BpeSpec spec = SmallSpec();
  spec.unknown_token = "?";
  spec.byte_fallback = true;
  spec.tokens.insert(spec.tokens.end(), {{"<0xC3>", 8}, {"<0xA9>", 9}, {"<0x78>", 10}});
  const auto bpe = Make(spec);
  EXPECT_THAT(Encode(*bpe, "é"), ElementsAre(8, 9));
  EXPECT_THAT(Encode(*bpe, "axè"), ElementsAre(0, 10, 7));  // no <0xA8>
}

TEST(BpeTest, BytesAreTokensInTheirOwnAlphabet) {
  BpeSpec spec;
  spec.byte_level = true;
  spec.tokens = {{"a", 0}, {"Ġ", 1}, {"Ġa", 2}, {"Ã", 3}, {"©", 4}, {"Ã©", 5}, {"日", 6}};
  spec.merges = {{"Ġ", "a"}, {"Ã", "©"}};
  const auto bpe = Make(spec);
  EXPECT_THAT(Encode(*bpe, " a"), ElementsAre(2));
  EXPECT_THAT(Encode(*bpe, "aé "), ElementsAre(0, 5, 1));
  EXPECT_EQ(bpe->Id("Ġa"), 2);
  EXPECT_EQ(bpe->Id(" a"), -1);
  EXPECT_EQ(bpe->Id("日"), 6);  // stands for no bytes; an added token may be spelled so
  EXPECT_EQ(bpe->num_tokens(), 7U);
}

TEST(BpeTest, RefusesMergesAndUnknownTokensThatTheVocabularyLacks) {
  BpeSpec spec = SmallSpec();
  spec.merges.emplace_back("c", "c");
  EXPECT_THAT(Bpe::Create(spec).status().message(), HasSubstr("\"merges\"[4]"));
  EXPECT_THAT(Bpe::Create(spec).status().message(), HasSubstr("\"cc\""));
  spec = SmallSpec();
  spec.unknown_token = "<unk>";
  EXPECT_EQ(Bpe::Create(spec).status().field(), "unk_token");
}

/// Merges one pair at a time, looking at all of them.
std::vector<std::string> MergeSlowly(const BpeSpec& spec, std::string_view piece) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> ranks;
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    ranks[spec.merges[rank]] = rank;
  }
  std::vector<std::string> parts;
  for (const char c : piece) {
    parts.emplace_back(1, c);
  }
  while (true) {
    size_t best = spec.merges.size();
    size_t at = 0;
    for (size_t i = 1; i < parts.size(); ++i) {
      const auto found = ranks.find({parts[i - 1], parts[i]});
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    }
    if (best == spec.merges.size()) {
      return parts;
    }
    parts[at - 1] += parts[at];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

TEST(BpeTest, EqualsMergingOnePairAtATimeOnRandomVocabularies) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    // As a trained vocabulary: each merge makes a new token of two earlier ones.
    std::vector<std::string> names = {"a", "b", "c"};
    std::vector<std::pair<size_t, size_t>> pairs;
    for (int i = 0; i < 40; ++i) {
      const size_t left = random() % names.size();
      const size_t right = random() % names.size();
      const std::string both = names[left] + names[right];
      if (both.size() <= 8 && std::ranges::find(names, both) == names.end()) {
        names.push_back(both);
        pairs.emplace_back(left, right);
      }
    }
    BpeSpec spec;
    std::map<std::string, int32_t> ids;
    for (size_t i = 0; i < names.size(); ++i) {
      spec.tokens.emplace_back(names[i], static_cast<int32_t>(i));
      ids[names[i]] = static_cast<int32_t>(i);
    }
    for (const auto& [left, right] : pairs) {
      spec.merges.emplace_back(names[left], names[right]);
    }
    if (round % 2 == 1) {
      std::ranges::shuffle(spec.merges, random);  // not as training would rank them
    }
    const auto bpe = Make(spec);
    for (int text = 0; text < 50; ++text) {
      std::string piece;
      // Few symbols, those of a heap, and those of lists by rank.
      const bool is_long = round % 10 < 2 && text == 0;
      const size_t length =
          is_long ? 512 + random() % 100 : 1 + random() % (text % 2 == 0 ? 40 : 80);
      for (size_t i = 0; i < length; ++i) {
        piece.push_back("abc"[random() % 3]);
      }
      std::vector<int32_t> expected;
      for (const std::string& part : MergeSlowly(spec, piece)) {
        expected.push_back(ids[part]);
      }
      ASSERT_EQ(Encode(*bpe, piece), expected) << piece;
    }
  }
}

TEST(ByteLevelTest, EveryByteHasACharacterAndBack) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string bytes;
    ASSERT_TRUE(AppendBytesOfToken(TokenOfByte(static_cast<uint8_t>(byte)), bytes));
    EXPECT_EQ(bytes, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(TokenOfByte(' '), "Ġ");
  EXPECT_EQ(TokenOfByte('\n'), "Ċ");
  std::string bytes = "kept";
  EXPECT_FALSE(AppendBytesOfToken("a b", bytes));  // a space stands for no byte
  EXPECT_EQ(bytes, "kept");
}

}  // namespace
}  // namespace bouquet::text
