// Every stage that a tokenizer.json may carry, and whole tokenizers with trained vocabularies, on
// texts of our own, against the reference library's ids (golden/make_stages.py,
// golden/make_sentencepiece_stages.py, golden/make_trained.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "testing/test_data.h"
#include "text/encode_scratch.h"
#include "text/text_pipeline.h"
#include "text/tokenizer_file.h"

#include <fstream>

namespace bouquet::text {
namespace {

using simdjson::dom::element;

std::vector<int32_t> Numbers(element array) {
  std::vector<int32_t> numbers;
  for (const element value : array.get_array()) {
    numbers.push_back(static_cast<int32_t>(value.get_int64().value()));
  }
  return numbers;
}

/// Types as TokenSequence has them, filled up where it leaves them out.
std::vector<int32_t> Types(const TokenSequence& sequence) {
  std::vector<int32_t> types(sequence.type_ids.begin(), sequence.type_ids.end());
  types.resize(sequence.ids.size(), 0);
  return types;
}

Result<std::unique_ptr<TextPipeline>> LoadPipeline(const std::string& json) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "tokenizer.json") << json;
  return TextPipeline::Load(folder.path(), false);
}

/// A file of goldens, and what it must hold at least: one cut short proves nothing.
struct Golden {
  std::string name;
  size_t least_texts;
  size_t least_configurations;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

class StagesTest : public ::testing::TestWithParam<Golden> {
 protected:
  StagesTest()
      : golden_(
            JsonDocument::ParseFile(testing::SourcePath("text/golden/" + GetParam().name + ".json"))
                .value()) {
    for (const element text : golden_.root()["texts"]) {
      texts_.emplace_back(text.get_string().value());
    }
  }

  /// The tokenizer.json of one configuration, the common vocabulary put in where it has no own.
  std::string TokenizerJson(element configuration) const {
    std::string json = simdjson::minify(configuration["tokenizer"].value());
    const std::string empty = "\"vocab\":{}";
    if (const size_t at = json.find(empty); at != std::string::npos) {
      json.replace(at, empty.size(),
                   "\"vocab\":" + simdjson::minify(golden_.root()["vocabulary"].value()));
    }
    return json;
  }

  template <class Check>
  void ForEachConfiguration(Check check) const {
    size_t count = 0;
    for (const element configuration : golden_.root()["configurations"]) {
      SCOPED_TRACE(std::string(configuration["name"].get_string().value()));
      check(configuration, TokenizerJson(configuration));
      ++count;
    }
    EXPECT_GE(count, GetParam().least_configurations);
    EXPECT_GE(texts_.size(), GetParam().least_texts);
  }

  JsonDocument golden_;
  std::vector<std::string> texts_;
};

TEST_P(StagesTest, GiveTheReferenceIdsWithSpecialTokensParsedAndLiteral) {
  ForEachConfiguration([&](element golden, const std::string& json) {
    const Result<TokenizerFile> file = ParseTokenizerJson(json, "tokenizer.json", false);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EncodeScratch scratch;
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::vector<int32_t> expected = Numbers(golden["ids"].at(i));
      std::vector<int32_t> ids;
      EXPECT_TRUE(
          file.value().tokenizer->Encode(texts_[i], {.parse_special = true}, scratch, ids).ok());
      EXPECT_EQ(ids, expected) << texts_[i];

      element literal;
      const bool differs =
          golden["literal_ids"][std::to_string(i)].get(literal) == simdjson::SUCCESS;
      ids.clear();
      EXPECT_TRUE(
          file.value().tokenizer->Encode(texts_[i], {.parse_special = false}, scratch, ids).ok());
      EXPECT_EQ(ids, differs ? Numbers(literal) : expected) << "literally: " << texts_[i];
    }
  });
}

TEST_P(StagesTest, GiveTheReferenceSpans) {
  ForEachConfiguration([&](element golden, const std::string& json) {
    const auto pipeline = LoadPipeline(json);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status().ToString();
    EncodeScratch scratch;
    uint64_t hash = 0xCBF29CE484222325;
    const auto fold = [&hash](uint32_t word) { hash = (hash ^ word) * 0x100000001B3; };
    for (const std::string& text : texts_) {
      const auto sequence = pipeline.value()->Encode(text, {.with_spans = true}, scratch);
      ASSERT_TRUE(sequence.ok()) << sequence.status().ToString();
      for (const auto& [begin, end] : CountedInCharacters(text, sequence.value().spans)) {
        fold(begin);
        fold(end);
      }
      fold(0xFFFFFFFF);
    }
    EXPECT_EQ(fmt::format("{:016x}", hash), golden["spans_hash"].get_string().value());
  });
}

TEST_P(StagesTest, FrameTextsAndPairsWithTheReferenceIdsAndTypes) {
  ForEachConfiguration([&](element golden, const std::string& json) {
    const auto pipeline = LoadPipeline(json);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status().ToString();
    EncodeScratch scratch;
    for (size_t i = 0; i < golden["framed_ids"].get_array().size(); ++i) {
      const auto sequence = pipeline.value()->Encode(texts_[i], {}, scratch);
      ASSERT_TRUE(sequence.ok()) << sequence.status().ToString();
      EXPECT_EQ(sequence.value().ids, Numbers(golden["framed_ids"].at(i)));
      EXPECT_EQ(Types(sequence.value()), Numbers(golden["framed_types"].at(i)));
    }
    const auto pairs = golden_.root()["pairs"].get_array();
    for (size_t i = 0; i < pairs.size(); ++i) {
      const std::string_view first = pairs.at(i).at(0).get_string().value();
      const std::string_view second = pairs.at(i).at(1).get_string().value();
      const auto framed = pipeline.value()->EncodePair(first, second, {}, scratch);
      const auto bare =
          pipeline.value()->EncodePair(first, second, {.add_special_tokens = false}, scratch);
      ASSERT_TRUE(framed.ok() && bare.ok());
      EXPECT_EQ(framed.value().ids, Numbers(golden["pair_ids"].at(i)));
      EXPECT_EQ(Types(framed.value()), Numbers(golden["pair_types"].at(i)));
      EXPECT_EQ(bare.value().ids, Numbers(golden["bare_pair_ids"].at(i)));
      EXPECT_EQ(Types(bare.value()), Numbers(golden["bare_pair_types"].at(i)));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Goldens, StagesTest,
                         ::testing::Values(Golden{"stages", 52, 50},
                                           Golden{"sentencepiece_stages", 46, 35},
                                           Golden{"trained", 180, 7}),
                         [](const auto& golden) { return golden.param.name; });

}  // namespace
}  // namespace bouquet::text
