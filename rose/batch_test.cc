#include "rose/batch.h"

#include <utility>

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

TEST(BatchTest, FillsInNoSpansOnBothSidesOfASequenceThatHasSpans) {
  Batch batch;
  batch.Add({1}, {}, 0, {});
  const TokenSpan spans[] = {{0, 1}, {2, 3}};
  batch.Add({2, 3, 4}, {}, 0, {}, spans);
  batch.Add({5}, {}, 0, {});
  EXPECT_THAT(batch.spans_per_sequence, ElementsAre(0, 2, 0));
  EXPECT_EQ(batch.spans.size(), 2U);
  EXPECT_EQ(batch.num_spans_of(1), 2);
  EXPECT_TRUE(ValidateBatch(batch, kLimits).ok());
  batch.Clear();
  batch.Add({7}, {}, 0, {});
  EXPECT_THAT(batch.spans_per_sequence, IsEmpty());
  EXPECT_EQ(batch.num_spans_of(0), 0);
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

/// {1, 2, 3} with spans 0..1 and 1..3, and {4, 5} with none.
Batch WithSpans() {
  Batch batch;
  const TokenSpan spans[] = {{0, 1}, {1, 3}};
  batch.Add({1, 2, 3}, {}, 0, {}, spans);
  batch.Add({4, 5}, {}, 0, {});
  return batch;
}

TEST(BatchTest, NamesWhatBreaksTheRulesOfSpans) {
  EXPECT_TRUE(ValidateBatch(WithSpans(), kLimits).ok());
  const Broken cases[] = {
      {"empty span", [](Batch& b) { b.spans[1].end = 1; }, "not 1..1: sequence 0, span 1"},
      {"turned round",
       [](Batch& b) {
         b.spans[1] = {3, 1};
       },
       "not 3..1: sequence 0, span 1"},
      {"overlap", [](Batch& b) { b.spans[0].end = 2; }, "start at 2 or later"},
      {"not rising", [](Batch& b) { std::swap(b.spans[0], b.spans[1]); }, "start at 3 or later"},
      {"negative begin", [](Batch& b) { b.spans[0].begin = -1; }, "not -1..1: sequence 0, span 0"},
      {"beyond the end", [](Batch& b) { b.spans[1].end = 4; }, "end at 3 or before, not 1..4"},
      {"far beyond the end", [](Batch& b) { b.spans[1].end = 2'000'000'000; }, "end at 3"},
      {"before the pooling start", [](Batch& b) { b.pooling_starts[0] = 1; }, "start at 1"},
      {"too few numbers", [](Batch& b) { b.spans_per_sequence.pop_back(); }, "1 for 2 sequences"},
      {"too many numbers", [](Batch& b) { b.spans_per_sequence.push_back(0); }, "3 for 2"},
      {"numbers without spans", [](Batch& b) { b.spans.clear(); }, "2 for 0 spans"},
      {"spans without numbers", [](Batch& b) { b.spans_per_sequence.clear(); }, "0 for 2 spans"},
      {"a span too many",
       [](Batch& b) {
         b.spans.push_back({0, 1});
       },
       "2 for 3 spans"},
      {"negative number",
       [](Batch& b) {
         b.spans_per_sequence = {3, -1};
       },
       "not -1: sequence 1"},
      {"huge numbers",
       [](Batch& b) {
         b.spans_per_sequence = {2'147'483'647, 2'147'483'647};
       },
       "4294967294 for 2 spans"},
  };
  for (const Broken& broken : cases) {
    Batch batch = WithSpans();
    broken.breaks(batch);
    const Status status = ValidateBatch(batch, kLimits);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << broken.what;
    EXPECT_THAT(status.message(), HasSubstr(broken.message)) << broken.what;
    EXPECT_THAT(status.field(), ::testing::StartsWith("spans")) << broken.what;
  }
}

TEST(BatchTest, RefusesMoreRowsThanAStepTakes) {
  Batch batch;
  const TokenSpan spans[] = {{0, 1}, {1, 2}, {2, 3}};
  batch.Add({1, 2, 3}, {}, 0, {}, spans);
  batch.Add({4}, {}, 0, {});
  EXPECT_TRUE(ValidateBatch(batch, kLimits).ok());
  batch.Add({5}, {}, 0, {});
  EXPECT_THAT(ValidateBatch(batch, kLimits).message(), HasSubstr("1..4 rows"));
  EXPECT_THAT(ValidateBatch(batch, kLimits).message(), HasSubstr("not 5"));
}

TEST(BatchTest, RefusesSpansOfAModelThatDoesNotPoolByTheMean) {
  BatchLimits limits = kLimits;
  limits.takes_spans = false;
  const Status status = ValidateBatch(WithSpans(), limits);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.field(), "spans");
  EXPECT_THAT(status.message(), HasSubstr("mean alone"));
  EXPECT_TRUE(ValidateBatch(TwoSequences(), limits).ok());
}

TEST(BatchTest, SignBitsTakeDimensionsOfWholeBytes) {
  BatchLimits limits = kLimits;
  limits.width = 20;
  for (const model::RowDtype dtype :
       {model::RowDtype::kSignBitsMsbFirst, model::RowDtype::kSignBitsLsbFirst}) {
    for (uint32_t dimensions = 1; dimensions <= 20; ++dimensions) {
      Batch batch;
      batch.Add({1}, {}, 0, {});
      batch.Add({2}, {}, 0, {.dtype = dtype, .dimensions = dimensions});
      const Status status = ValidateBatch(batch, limits);
      EXPECT_EQ(status.ok(), dimensions % 8 == 0) << dimensions;
    }
    Batch batch;
    batch.Add({1}, {}, 0, {});
    batch.Add({2}, {}, 0, {.dtype = dtype});  // the full width, which is 20
    const Status status = ValidateBatch(batch, limits);
    EXPECT_EQ(status.field(), "dimensions");
    EXPECT_EQ(status.message(),
              "dimensions of sign bits must be a multiple of 8, not 20: sequence 1");
  }
  Batch batch;
  batch.Add({1}, {}, 0, {.dtype = model::RowDtype::kTanhInt8, .dimensions = 5});
  EXPECT_TRUE(ValidateBatch(batch, limits).ok());
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
