#include "text/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Entry {
  std::string token;
  double score;
};

/// Points into `entries`.
UnigramSpec SpecOf(const std::vector<Entry>& entries, int32_t unknown_id) {
  UnigramSpec spec;
  for (const Entry& entry : entries) {
    spec.tokens.emplace_back(entry.token, static_cast<int32_t>(spec.tokens.size()));
    spec.scores.push_back(entry.score);
  }
  spec.unknown_id = unknown_id;
  return spec;
}

struct Encoded {
  std::vector<int32_t> ids;
  std::vector<ByteSpan> spans;
};

Encoded Encode(const Unigram& model, std::string_view piece) {
  static EncodeScratch scratch;
  Encoded encoded;
  model.Encode(piece, scratch, encoded.ids, &encoded.spans);
  std::vector<int32_t> again;
  model.Encode(piece, scratch, again, nullptr);
  EXPECT_EQ(again, encoded.ids) << piece;
  return encoded;
}

const std::vector<Entry>& Letters() {
  static const std::vector<Entry> letters = {{"<unk>", 0}, {"a", -1},    {"b", -1},
                                             {"ab", -2},   {"bc", -1.5}, {"abc", -4}};
  return letters;
}

TEST(UnigramTest, TakesTheBestSumOfScoresAndTheFirstFoundOfEquals) {
  const auto model = Unigram::Create(SpecOf(Letters(), 0)).value();
  EXPECT_THAT(Encode(*model, "abc").ids, ElementsAre(1, 4));  // -2.5, not -4
  // "ab" begins earlier and is offered first; -1 + -1 is no better.
  EXPECT_THAT(Encode(*model, "ab").ids, ElementsAre(3));
  EXPECT_THAT(Encode(*model, "aab").ids, ElementsAre(1, 3));
}

TEST(UnigramTest, FusesUnknownCharactersAndGivesTheBytesOfEachToken) {
  const auto model = Unigram::Create(SpecOf(Letters(), 0)).value();
  const Encoded encoded = Encode(*model, "axé中bx");
  EXPECT_THAT(encoded.ids, ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(encoded.spans,
              ElementsAre(ByteSpan{0, 1}, ByteSpan{1, 7}, ByteSpan{7, 8}, ByteSpan{8, 9}));
}

TEST(UnigramTest, LooksAFusedRunUpAsOneToken) {
  // Scores over 10 make two unknown characters better than the token that they spell.
  const auto model = Unigram::Create(SpecOf({{"<unk>", 30}, {"xy", 30}, {"a", 30}}, 0)).value();
  EXPECT_THAT(Encode(*model, "xya").ids, ElementsAre(1, 2));
  EXPECT_THAT(Encode(*model, "xyxa").ids, ElementsAre(0, 2));
}

TEST(UnigramTest, FallsBackToBytesOnlyWhereAllHaveTokens) {
  const std::vector<Entry> entries = {{"<unk>", 0}, {"a", -1}, {"<0xC3>", -2}, {"<0xA9>", -2}};
  UnigramSpec spec = SpecOf(entries, 0);
  spec.byte_fallback = true;
  const auto model = Unigram::Create(spec).value();
  const Encoded encoded = Encode(*model, "aéa");
  EXPECT_THAT(encoded.ids, ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(encoded.spans,
              ElementsAre(ByteSpan{0, 1}, ByteSpan{1, 3}, ByteSpan{1, 3}, ByteSpan{3, 4}));
  EXPECT_THAT(Encode(*model, "aéxa").ids, ElementsAre(1, 0, 1));
}

TEST(UnigramTest, CountsTheLastOfATokenThatIsListedTwice) {
  const auto model =
      Unigram::Create(SpecOf({{"<unk>", 0}, {"a", -1}, {"a", -3}, {"b", -1}}, 0)).value();
  EXPECT_THAT(Encode(*model, "ab").ids, ElementsAre(2, 3));
  EXPECT_EQ(model->num_tokens(), 4U);
  EXPECT_EQ(model->Id("a"), 2);
  EXPECT_EQ(model->Id("c"), -1);
}

TEST(UnigramTest, RefusesAnUnknownIdOutsideTheVocabulary) {
  for (const int32_t id : {-1, 6}) {
    const Status status = Unigram::Create(SpecOf(Letters(), id)).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("\"unk_id\" is not in the vocabulary"));
  }
  EXPECT_FALSE(Unigram::Create({}).ok());
}

/// The best score of the rest of a piece by trying every first token, with nothing shared with the
/// code under test.
double BestScore(const std::map<std::string, double>& scores, double unknown_score,
                 const std::string& text, size_t begin, std::map<size_t, double>& known) {
  if (begin == text.size()) {
    return 0;
  }
  if (const auto found = known.find(begin); found != known.end()) {
    return found->second;
  }
  const size_t character = unicode::Decode(std::string_view(text).substr(begin)).num_bytes;
  double best = -1e300;
  for (size_t size = 1; begin + size <= text.size(); ++size) {
    const auto found = scores.find(text.substr(begin, size));
    if (found != scores.end() || size == character) {
      const double score = found != scores.end() ? found->second : unknown_score;
      best = std::max(best, score + BestScore(scores, unknown_score, text, begin + size, known));
    }
  }
  return known[begin] = best;
}

TEST(UnigramTest, FindsTheBestScoreOnRandomVocabulariesAndTexts) {
  std::mt19937 random(11);
  const auto random_text = [&](size_t max_characters) {
    const std::string letters[] = {"a", "b", "c", "é", "中", "x"};
    std::string text;
    for (size_t i = random() % max_characters + 1; i > 0; --i) {
      text += letters[random() % std::size(letters)];
    }
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Entry> entries = {{"<unk>", 0}};
    std::map<std::string, double> scores;
    for (int i = 0; i < 20; ++i) {
      const std::string token = random_text(4);
      const double score = -1 - static_cast<double>(random() % 64) / 8;  // sums are exact
      if (scores.emplace(token, score).second) {
        entries.push_back({token, score});
      }
    }
    const auto model = Unigram::Create(SpecOf(entries, 0)).value();
    double lowest = 0;
    for (const auto& [token, score] : scores) {
      lowest = std::min(lowest, score);
    }
    for (int i = 0; i < 50; ++i) {
      const std::string text = random_text(30);
      const Encoded encoded = Encode(*model, text);
      double sum = 0;
      size_t end = 0;
      for (size_t k = 0; k < encoded.ids.size(); ++k) {
        EXPECT_EQ(encoded.spans[k].begin, end);
        end = encoded.spans[k].end;
        const std::string part = text.substr(encoded.spans[k].begin, end - encoded.spans[k].begin);
        if (encoded.ids[k] == 0) {
          sum += (lowest - 10) * static_cast<double>(unicode::CountCodePoints(part));
        } else {
          EXPECT_EQ(part, entries[static_cast<size_t>(encoded.ids[k])].token);
          sum += entries[static_cast<size_t>(encoded.ids[k])].score;
        }
      }
      EXPECT_EQ(end, text.size());
      std::map<size_t, double> known;
      EXPECT_EQ(sum, BestScore(scores, lowest - 10, text, 0, known)) << text;
    }
  }
}

TEST(UnigramTest, KeepsNoMoreOfALongPieceThanTokensReachOver) {
  const auto model = Unigram::Create(SpecOf(Letters(), 0)).value();
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += "abcxxab中";
  }
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  model->Encode(text, scratch, ids, nullptr);
  EXPECT_EQ(ids.size(), 500'000U);  // a bc <unk> ab <unk>
  EXPECT_LT(scratch.unigram_steps.capacity(), 100U);
}

}  // namespace
}  // namespace bouquet::text
