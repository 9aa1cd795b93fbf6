#include "rose/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::rose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr BatchLimits kLimits = {.vocabulary_rows = 10,
                                 .token_types = 2,
                                 .max_positions = 4,
                                 .max_tokens = 6,
                                 .max_sequences = 3,
                                 .width = 8,
                                 .max_rows = 4,
                                 .takes_spans = true};

Batch TwoSequences() {
  Batch batch;
  batch.Add({1, 2, 3}, {}, 0, {});
  batch.Add({4, 5}, {}, 1, {.dimensions = 8});
  return batch;
}

TEST(BatchTest, LaysSequencesEndToEnd) {
  const Batch batch = TwoSequences();
  EXPECT_THAT(batch.token_ids, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(batch.sequence_offsets, ElementsAre(0, 3, 5));
  EXPECT_THAT(batch.pooling_starts, ElementsAre(0, 1));
  EXPECT_THAT(batch.token_type_ids, IsEmpty());
  EXPECT_TRUE(ValidateBatch(batch, kLimits).ok());
}

TEST(BatchTest, FillsInZeroTypesOnBothSidesOfASequenceThatHasTypes) {
  Batch batch;
  batch.Add({1}, {}, 0, {});
  batch.Add({2, 3}, {0, 1}, 0, {});
  batch.Add({4}, {}, 0, {});
  EXPECT_THAT(batch.token_type_ids, ElementsAre(0, 0, 1, 0));
  EXPECT_TRUE(ValidateBatch(batch, kLimits).ok());
}

TEST(BatchTest, ClearEmptiesItForTheNextStep) {
  Batch batch = TwoSequences();
  batch.Clear();
  batch.Add({7}, {}, 0, {});
  EXPECT_THAT(batch.token_ids, ElementsAre(7));
  EXPECT_THAT(batch.sequence_offsets, ElementsAre(0, 1));
}

struct Broken {
  const char* what;
  void (*breaks)(Batch& batch);
  const char* message;
};

TEST(BatchTest, NamesWhatBreaksAnInvariant) {
  const Broken cases[] = {
      {"id too large", [](Batch& b) { b.token_ids[3] = 10; }, "0..9, not 10: sequence 1, token 0"},
      {"negative id", [](Batch& b) { b.token_ids[2] = -1; }, "not -1: sequence 0, token 2"},
      {"position", [](Batch& b) { b.positions[1] = 4; }, "position must be 0..3, not 4"},
      {"type",
       [](Batch& b) {
         b.token_type_ids = {0, 0, 0, 0, 2};
       },
       "token type must be 0..1"},
      {"types of another length", [](Batch& b) { b.token_type_ids = {0}; }, "one per token"},
      {"positions of another length", [](Batch& b) { b.positions.pop_back(); }, "one per token"},
      {"no tokens", [](Batch& b) { b.Clear(); }, "1..6 tokens, not 0"},
      {"too many tokens",
       [](Batch& b) {
         b.Add({1, 1}, {}, 0, {});
       },
       "1..6 tokens, not 7"},
      {"no sequences", [](Batch& b) { b.outputs.clear(); }, "1..3 sequences, not 0"},
      {"missing offset", [](Batch& b) { b.sequence_offsets.pop_back(); }, "one offset more"},
      {"missing pooling start", [](Batch& b) { b.pooling_starts.pop_back(); }, "pooling start"},
      {"first offset", [](Batch& b) { b.sequence_offsets[0] = 1; }, "must run from 0 to 5"},
      {"last offset", [](Batch& b) { b.sequence_offsets[2] = 4; }, "must run from 0 to 5"},
      {"empty sequence", [](Batch& b) { b.sequence_offsets[1] = 5; }, "sequence 1 spans 5..5"},
      {"falling offset", [](Batch& b) { b.sequence_offsets[1] = -2; }, "sequence 0 spans 0..-2"},
      {"offset outside", [](Batch& b) { b.sequence_offsets[1] = 100; }, "spans 0..100"},
      {"pooling start", [](Batch& b) { b.pooling_starts[1] = 2; }, "one of the 2 tokens, not at 2"},
      {"negative pooling start", [](Batch& b) { b.pooling_starts[0] = -1; }, "not at -1"},
      {"dimensions", [](Batch& b) { b.outputs[1].dimensions = 9; }, "0..8, not 9: sequence 1"},
  };
  for (const Broken& broken : cases) {
    Batch batch = TwoSequences();
    broken.breaks(batch);
    const Status status = ValidateBatch(batch, kLimits);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << broken.what;
    EXPECT_THAT(status.message(), HasSubstr(broken.message)) << broken.what;
  }
}

TEST(BatchTest, RefusesMoreSequencesThanAStepTakes) {
  Batch batch;
  for (int i = 0; i < 4; ++i) {
    batch.Add({1}, {}, 0, {});
  }
  EXPECT_THAT(ValidateBatch(batch, kLimits).message(), HasSubstr("1..3 sequences, not 4"));
}

}  // namespace
}  // namespace bouquet::rose
