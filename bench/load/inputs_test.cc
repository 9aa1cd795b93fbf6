#include "bench/load/inputs.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/load/server_facts.h"

namespace bouquet::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteText(const std::string& content) {
  const std::string path = ::testing::TempDir() + "inputs_test.txt";
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

RowPlan RowOf(int32_t batch, int32_t tokens) {
  RowPlan row;
  row.batch = batch;
  row.tokens = tokens;
  return row;
}

TEST(InputsTest, MakesRandomIdsWithinBoundsTheSameForASeed) {
  const InputSource source{.min_id = 5, .max_id = 8, .seed = 2};
  const auto inputs = MakeInputs(source, RowOf(3, 200), 0);
  ASSERT_EQ(inputs.size(), 3U);
  std::vector<int> seen(10, 0);
  for (const client::EmbedInput& input : inputs) {
    const auto& ids = std::get<std::vector<int32_t>>(input);
    EXPECT_EQ(ids.size(), 200U);
    for (const int32_t id : ids) {
      ASSERT_GE(id, 5);
      ASSERT_LE(id, 8);
      ++seen[static_cast<size_t>(id)];
    }
  }
  for (int id = 5; id <= 8; ++id) {
    EXPECT_GT(seen[static_cast<size_t>(id)], 90) << id;  // 150 expected, deviation 11
  }
  EXPECT_EQ(MakeInputs(source, RowOf(3, 200), 0), inputs);
  EXPECT_NE(MakeInputs(source, RowOf(3, 200), 1), inputs);
  InputSource other = source;
  other.seed = 3;
  EXPECT_NE(MakeInputs(other, RowOf(3, 200), 0), inputs);
}

TEST(InputsTest, TakesTextsInTurn) {
  const InputSource source{.texts = {"a", "b", "c"}};
  EXPECT_THAT(MakeInputs(source, RowOf(2, 0), 0), ElementsAre("a", "b"));
  EXPECT_THAT(MakeInputs(source, RowOf(2, 0), 1), ElementsAre("c", "a"));
}

TEST(InputsTest, PreparesManyDistinctRequestsButBoundsTheirBytes) {
  const client::ClientOptions target;
  const std::vector<LoadRequest> small = MakeRequests({}, RowOf(1, 8), target);
  EXPECT_EQ(small.size(), 64U);
  EXPECT_NE(small[0].prepared.bytes, small[1].prepared.bytes);
  EXPECT_EQ(small[0].num_tokens, 8);
  const std::vector<LoadRequest> large = MakeRequests({}, RowOf(1000, 4096), target);
  EXPECT_EQ(large.size(), 4U);
  EXPECT_EQ(large[0].num_tokens, 4'096'000);
  EXPECT_EQ(MakeRequests({.texts = {"a", "b"}}, RowOf(1, 0), target).size(), 3U);
}

TEST(InputsTest, ReadsLinesThatHoldSomething) {
  const auto texts = ReadTexts(WriteText("one\r\n\n two \nlast"));
  ASSERT_TRUE(texts.ok());
  EXPECT_THAT(*texts, ElementsAre("one", " two ", "last"));
  EXPECT_EQ(ReadTexts("no-such-file").code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadTexts(WriteText("\n\n")).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ReadTexts(WriteText("fine\nbad \xff\n")).status().message(), HasSubstr(":2: "));
}

TEST(ServerFactsTest, ReadsBouquetAndTeiAndModelLists) {
  const ServerFacts bouquet = ReadServerFacts(
      R"({"model_id":"m","served_model_name":"s","version":"1","max_input_length":256,
          "bouquet":{"models":[{"vocabulary_rows":30522}]}})",
      "");
  EXPECT_EQ(bouquet.model, "s");
  EXPECT_EQ(bouquet.version, "1");
  EXPECT_EQ(bouquet.max_input_tokens, 256);
  EXPECT_EQ(bouquet.vocabulary_rows, 30522);
  const ServerFacts tei = ReadServerFacts(R"({"model_id":"m","max_input_length":512})", "");
  EXPECT_EQ(tei.model, "m");
  EXPECT_EQ(tei.vocabulary_rows, 0);
  const ServerFacts list =
      ReadServerFacts("", R"({"object":"list","data":[{"id":"x","max_model_len":8192}]})");
  EXPECT_EQ(list.model, "x");
  EXPECT_EQ(list.max_input_tokens, 8192);
  EXPECT_EQ(list.info, "");
}

TEST(ServerFactsTest, PassesOverWhatIsNotOfTheForm) {
  for (const char* text : {"", "[]", "3", "<html>", R"({"model_id":7,"max_input_length":"x"})",
                           R"({"data":[],"max_input_length":-4})"}) {
    const ServerFacts facts = ReadServerFacts(text, text);
    EXPECT_EQ(facts.model, "") << text;
    EXPECT_EQ(facts.max_input_tokens, 0) << text;
  }
}

}  // namespace
}  // namespace bouquet::bench
