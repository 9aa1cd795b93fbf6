#include <cmath>
#include <limits>
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
  static double Reference(PoolingMode mode, const TestMatrix& hidden, int64_t first, int64_t start,
                          int64_t length, int64_t column) {
    double sum = 0;
    double weights = 0;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t token = start; token < length; ++token) {
      const double value = hidden.at(first + token, column);
      const double weight =
          mode == PoolingMode::kWeightedMean ? static_cast<double>(token + 1) : 1.0;
      sum += weight * value;
      weights += weight;
      largest = std::max(largest, value);
    }
    switch (mode) {
      case PoolingMode::kCls: return hidden.at(first, column);
      case PoolingMode::kMax: return start == length ? 0 : largest;
      case PoolingMode::kMean:
      case PoolingMode::kWeightedMean: return sum / std::max(weights, 1e-9);
      case PoolingMode::kMeanSqrtLength: return sum / std::sqrt(std::max(weights, 1e-9));
      case PoolingMode::kLastToken: return hidden.at(first + length - 1, column);
    }
    return 0;
  }

  void Check(const std::vector<int32_t>& lengths, int64_t width, const std::vector<int32_t>& starts,
             std::vector<PoolingMode> modes) {
    FinishLoading();
    TestBatch batch(lengths);
    if (!starts.empty()) {
      batch.pooling_starts = starts;
    }
    const StepInputs inputs = batch.inputs();
    const TestMatrix hidden = RandomMatrix(dtype(), inputs.num_tokens, width, 2.0F, 0.5F);
    const auto num_modes = static_cast<int64_t>(modes.size());
    TestMatrix out = PoisonedMatrix(Dtype::kFloat32, inputs.num_sequences, num_modes * width);
    RunStep(inputs, [&](const StepInputs& given) {
      backend().Pool({modes}, given, hidden.view(), out.view());
    });
    Fetch(&out);
    for (int64_t sequence = 0; sequence < inputs.num_sequences; ++sequence) {
      const auto index = static_cast<size_t>(sequence);
      for (int64_t mode = 0; mode < num_modes; ++mode) {
        for (int64_t column = 0; column < width; ++column) {
          const double expected =
              Reference(modes[static_cast<size_t>(mode)], hidden, batch.offsets[index],
                        batch.pooling_starts[index], lengths[index], column);
          // Pooling sums in float32 whatever the compute dtype.
          ASSERT_NEAR(out.at(sequence, mode * width + column), expected,
                      Tolerance(Dtype::kFloat32, expected, 4 * std::sqrt(lengths[index])))
              << "sequence " << sequence << ", mode " << mode << ", column " << column;
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
