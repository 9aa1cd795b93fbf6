#include "ivy/encode/gatherer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::ivy {
namespace {

using ::testing::ElementsAre;

std::vector<text::TokenSequence> ThreeInputs() {
  return {{.ids = {1, 2}, .untruncated_tokens = 2},
          {.ids = {3}, .untruncated_tokens = 9},
          {.ids = {4, 5, 6}, .untruncated_tokens = 3}};
}

ChunkRows Rows(std::vector<float> values, size_t count) {
  ChunkRows rows;
  rows.dimensions = static_cast<uint32_t>(values.size() / count);
  rows.values = std::move(values);
  rows.statuses.resize(count);
  rows.queue_us = 30 * static_cast<int64_t>(count);
  rows.step_us = 60 * static_cast<int64_t>(count);
  return rows;
}

TEST(GathererTest, PutsChunksTogetherInInputOrderWhateverEndsFirst) {
  Gatherer gatherer(ThreeInputs(), 5);
  EXPECT_TRUE(gatherer.Add({2, 1, 3}, Rows({5, 6}, 1)).ok());
  EXPECT_TRUE(gatherer.Add({0, 2, 3}, Rows({1, 2, 3, 4}, 2)).ok());
  const EncodedRows rows = gatherer.Take();
  EXPECT_EQ(rows.dimensions, 2U);
  EXPECT_THAT(rows.values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(rows.token_counts, ElementsAre(2, 1, 3));
  EXPECT_THAT(rows.truncated, ElementsAre(0, 1, 0));
  EXPECT_EQ(rows.timings.tokenize_us, 5);
  EXPECT_EQ(rows.timings.queue_us, 30);
  EXPECT_EQ(rows.timings.step_us, 60);
}

TEST(GathererTest, TakesTheRowsOfASingleChunkWithoutCopying) {
  Gatherer gatherer(ThreeInputs(), 0);
  ChunkRows chunk = Rows({1, 2, 3}, 3);
  const float* data = chunk.values.data();
  EXPECT_TRUE(gatherer.Add({0, 3, 6}, std::move(chunk)).ok());
  EXPECT_EQ(gatherer.Take().values.data(), data);
}

TEST(GathererTest, KeepsAnInputThatFailedAloneApart) {
  Gatherer gatherer(ThreeInputs(), 0);
  ChunkRows chunk = Rows({1, 0, 3}, 3);
  chunk.statuses[1] = Internal("not finite");
  EXPECT_TRUE(gatherer.Add({0, 3, 6}, std::move(chunk)).ok());
  const EncodedRows rows = gatherer.Take();
  EXPECT_TRUE(rows.statuses[0].ok());
  EXPECT_EQ(rows.statuses[1].code(), StatusCode::kInternal);
}

TEST(GathererTest, ReportsWhatEndsTheWholeRequest) {
  for (const Status& status :
       {DeadlineExceeded("late"), Cancelled("gone"), Unavailable("stopping")}) {
    Gatherer gatherer(ThreeInputs(), 0);
    ChunkRows chunk = Rows({1, 2, 3}, 3);
    chunk.statuses[2] = status;
    EXPECT_EQ(gatherer.Add({0, 3, 6}, std::move(chunk)).code(), status.code());
  }
}

TEST(GathererTest, RefusesRowsOfDifferentWidths) {
  Gatherer gatherer(ThreeInputs(), 0);
  EXPECT_TRUE(gatherer.Add({0, 2, 3}, Rows({1, 2, 3, 4}, 2)).ok());
  EXPECT_EQ(gatherer.Add({2, 1, 3}, Rows({5, 6, 7}, 1)).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace bouquet::ivy
