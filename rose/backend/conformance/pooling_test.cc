#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

constexpr PoolingMode kAllModes[] = {PoolingMode::kCls,          PoolingMode::kMax,
                                     PoolingMode::kMean,         PoolingMode::kMeanSqrtLength,
                                     PoolingMode::kWeightedMean, PoolingMode::kLastToken};

class PoolingTest : public BackendTest {
 protected:
  static double Reference(PoolingMode mode, const TestMatrix& hidden, const PoolingRange& range,
                          int64_t column) {
    double sum = 0;
    double weights = 0;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t token = range.begin; token < range.end; ++token) {
      const double value = hidden.at(token, column);
      const double weight =
          mode == PoolingMode::kWeightedMean ? static_cast<double>(token - range.first + 1) : 1.0;
      sum += weight * value;
      weights += weight;
      largest = std::max(largest, value);
    }
    switch (mode) {
      case PoolingMode::kCls: return hidden.at(range.first, column);
      case PoolingMode::kMax: return range.begin == range.end ? 0 : largest;
      case PoolingMode::kMean:
      case PoolingMode::kWeightedMean: return sum / std::max(weights, 1e-9);
      case PoolingMode::kMeanSqrtLength: return sum / std::sqrt(std::max(weights, 1e-9));
      case PoolingMode::kLastToken: return hidden.at(range.end - 1, column);
    }
    return 0;
  }

  void Check(const std::vector<int32_t>& lengths, int64_t width, const std::vector<int32_t>& starts,
             std::vector<PoolingMode> modes) {
    TestBatch batch(lengths);
    for (size_t i = 0; i < starts.size(); ++i) {
      batch.ranges[i].begin += starts[i];
    }
    CheckBatch(batch, width, std::move(modes));
  }

  void CheckBatch(const TestBatch& batch, int64_t width, std::vector<PoolingMode> modes) {
    FinishLoading();
    const StepInputs inputs = batch.inputs();
    const TestMatrix hidden = RandomMatrix(dtype(), inputs.num_tokens, width, 2.0F, 0.5F);
    const auto num_modes = static_cast<int64_t>(modes.size());
    TestMatrix out = PoisonedMatrix(Dtype::kFloat32, inputs.num_rows, num_modes * width);
    RunStep(inputs, [&](const StepInputs& given) {
      backend().Pool({modes}, given, hidden.view(), out.view());
    });
    Fetch(&out);
    for (int64_t row = 0; row < inputs.num_rows; ++row) {
      const PoolingRange& range = batch.ranges[static_cast<size_t>(row)];
      for (int64_t mode = 0; mode < num_modes; ++mode) {
        for (int64_t column = 0; column < width; ++column) {
          const double expected =
              Reference(modes[static_cast<size_t>(mode)], hidden, range, column);
          // Pooling sums in float32 whatever the compute dtype.
          ASSERT_NEAR(out.at(row, mode * width + column), expected,
                      Tolerance(Dtype::kFloat32, expected, 4 * std::sqrt(range.end - range.first)))
              << "row " << row << ", mode " << mode << ", column " << column;
        }
      }
    }
  }
};

INSTANTIATE_ON_ALL_BACKENDS(PoolingTest);

TEST_P(PoolingTest, EveryModeAlone) {
  for (const PoolingMode mode : kAllModes) {
    Check({1, 600, 2, 17, 1, 3}, 70, {}, {mode});
  }
}

TEST_P(PoolingTest, SeveralModesLieSideBySideInTheirOrder) {
  Check({5, 1, 40}, 48, {}, {kAllModes, kAllModes + 6});
  Check({5, 1, 40}, 48, {}, {PoolingMode::kMean, PoolingMode::kCls});
}

TEST_P(PoolingTest, CountsFromThePoolingStart) {
  Check({5, 9, 40}, 33, {2, 8, 0}, {kAllModes, kAllModes + 6});
}

TEST_P(PoolingTest, ASequenceWithoutACountedTokenIsZero) {
  Check({5, 3}, 33, {5, 1}, {PoolingMode::kMean, PoolingMode::kMax, PoolingMode::kWeightedMean});
}

/// Spans of a document of 600 tokens, separators left out, between two sequences that have none.
TestBatch DocumentWithSpans() {
  TestBatch batch({7, 600, 3});
  batch.ClearRows();
  batch.AddRow({0, 2, 7}, 1);
  for (const auto& [begin, end] : std::vector<std::pair<int32_t, int32_t>>{
           {0, 1}, {2, 3}, {3, 20}, {21, 150}, {151, 279}, {280, 600}}) {
    batch.AddRow({7, 7 + begin, 7 + end}, 1);
  }
  batch.AddRow({607, 607, 610}, 1);
  return batch;
}

TEST_P(PoolingTest, MeansOverSpansStandBesideRowsOfWholeSequences) {
  for (const int64_t width : {70, 64, 384}) {
    CheckBatch(DocumentWithSpans(), width, {PoolingMode::kMean});
  }
}

TEST_P(PoolingTest, ManyShortSpansAreTheMeansOfTheirTokens) {
  for (const int64_t width : {64, 1024, 33}) {
    TestBatch batch({1500, 500});
    batch.ClearRows();
    for (int32_t begin = 0; begin < 1500;) {
      const int32_t length = std::min<int32_t>(1 + begin % 9, 1500 - begin);
      batch.AddRow({0, begin, begin + length}, 1);
      begin += length;
    }
    batch.AddRow({1500, 1500, 2000}, 1);
    CheckBatch(batch, width, {PoolingMode::kMean});
  }
}

TEST_P(PoolingTest, ARowHasTheSameBitsAloneAndAmongMany) {
  FinishLoading();
  const PoolingRange one{0, 100, 500};
  TestBatch alone({600});
  alone.ranges = {one};
  TestBatch many({600});
  many.ClearRows();
  for (int32_t row = 0; row < 300; ++row) {
    many.AddRow(row == 123 ? one : PoolingRange{0, row, row + 200}, 1);
  }
  const TestMatrix hidden = RandomMatrix(dtype(), 600, 256);
  const PoolingMode mode[] = {PoolingMode::kMean};
  const auto pool = [&](const TestBatch& batch) {
    TestMatrix out = PoisonedMatrix(Dtype::kFloat32, batch.inputs().num_rows, 256);
    RunStep(batch.inputs(), [&](const StepInputs& given) {
      backend().Pool({mode}, given, hidden.view(), out.view());
    });
    Fetch(&out);
    return out.values;
  };
  const std::vector<float> expected = pool(alone);
  const std::vector<float> all = pool(many);
  EXPECT_EQ(std::vector<float>(all.begin() + 123 * 256, all.begin() + 124 * 256), expected);
}

TEST_P(PoolingTest, ANanOutsideASpanDoesNotReachIt) {
  FinishLoading();
  TestBatch batch({9});
  batch.ClearRows();
  batch.AddRow({0, 0, 4}, 1);
  batch.AddRow({0, 5, 9}, 1);
  TestMatrix hidden = RandomMatrix(dtype(), 9, 40);
  std::fill_n(hidden.values.begin() + 4 * 40, 40, std::numeric_limits<float>::quiet_NaN());
  hidden = Matrix(dtype(), 9, 40, hidden.values);
  TestMatrix out = PoisonedMatrix(Dtype::kFloat32, 2, 40);
  const PoolingMode mode[] = {PoolingMode::kMean};
  RunStep(batch.inputs(), [&](const StepInputs& given) {
    backend().Pool({mode}, given, hidden.view(), out.view());
  });
  Fetch(&out);
  for (const float value : out.values) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_P(PoolingTest, ANanIsNotLostInAMaximum) {
  FinishLoading();
  const TestBatch batch({3, 3, 3});
  TestMatrix hidden = RandomMatrix(dtype(), 9, 20);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  hidden.values[0] = nan;           // first token of sequence 0
  hidden.values[4 * 20 + 1] = nan;  // second token of sequence 1
  hidden.values[8 * 20 + 2] = nan;  // last token of sequence 2
  hidden = Matrix(dtype(), 9, 20, hidden.values);
  TestMatrix out = PoisonedMatrix(Dtype::kFloat32, 3, 20);
  const PoolingMode mode[] = {PoolingMode::kMax};
  RunStep(batch.inputs(), [&](const StepInputs& given) {
    backend().Pool({mode}, given, hidden.view(), out.view());
  });
  Fetch(&out);
  for (int64_t sequence = 0; sequence < 3; ++sequence) {
    for (int64_t column = 0; column < 20; ++column) {
      EXPECT_EQ(std::isnan(out.at(sequence, column)), sequence == column);
    }
  }
}

}  // namespace
}  // namespace bouquet::rose
