#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

class FinishRowsTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) {
      FinishLoading();
    }
  }

  /// FinishRows of `x` under the batch's dimensions and normalize.
  void Finish(const TestBatch& batch, const TestMatrix& x) {
    rows_.assign(x.values.size(), std::numeric_limits<float>::quiet_NaN());
    statuses_.assign(static_cast<size_t>(x.rows), RowStatus::kNotFinite);
    StepSlotMemory slot;
    slot.host = batch.inputs();
    slot.rows = rows_.data();
    slot.statuses = statuses_.data();
    Run(slot, [&](const StepInputs& inputs) { backend().FinishRows(inputs, x.view()); });
  }

  static double Length(const float* row, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      squares += static_cast<double>(row[i]) * row[i];
    }
    return std::sqrt(squares);
  }

  std::vector<float> rows_;
  std::vector<RowStatus> statuses_;
};

INSTANTIATE_ON_ALL_BACKENDS(FinishRowsTest);

TEST_P(FinishRowsTest, CutsFirstAndNormalisesAfter) {
  constexpr int64_t kWidth = 50;
  TestBatch batch(std::vector<int32_t>(100, 1));
  for (size_t row = 0; row < 100; ++row) {
    batch.dimensions[row] = static_cast<int32_t>(row % kWidth) + 1;
    batch.normalize[row] = row % 3 != 0;
  }
  const TestMatrix x = RandomMatrix(Dtype::kFloat32, 100, kWidth, 3.0F);
  Finish(batch, x);
  for (int64_t row = 0; row < 100; ++row) {
    const auto index = static_cast<size_t>(row);
    const int64_t dimensions = batch.dimensions[index];
    const float* source = x.values.data() + row * kWidth;
    const double scale = batch.normalize[index] != 0 ? 1 / Length(source, dimensions) : 1;
    EXPECT_EQ(statuses_[index], RowStatus::kOk);
    for (int64_t i = 0; i < dimensions; ++i) {
      ASSERT_NEAR(rows_[static_cast<size_t>(row * kWidth + i)], source[i] * scale, 1e-6)
          << "row " << row << ", column " << i;
    }
  }
}

TEST_P(FinishRowsTest, MarksOnlyTheRowsThatAreNotFinite) {
  TestMatrix x = RandomMatrix(Dtype::kFloat32, 40, 30);
  x.values[3 * 30 + 4] = std::numeric_limits<float>::quiet_NaN();
  x.values[17 * 30] = std::numeric_limits<float>::infinity();
  x.values[39 * 30 + 29] = -std::numeric_limits<float>::infinity();
  x = Matrix(Dtype::kFloat32, 40, 30, x.values);
  TestBatch batch(std::vector<int32_t>(40, 1), 30);
  for (size_t row = 0; row < 40; row += 2) {
    batch.normalize[row] = 0;
  }
  Finish(batch, x);
  for (size_t row = 0; row < 40; ++row) {
    const bool is_bad = row == 3 || row == 17 || row == 39;
    EXPECT_EQ(statuses_[row], is_bad ? RowStatus::kNotFinite : RowStatus::kOk) << row;
    for (size_t i = 0; i < 30; ++i) {
      EXPECT_TRUE(std::isfinite(rows_[row * 30 + i]));
    }
  }
}

TEST_P(FinishRowsTest, ValuesBehindTheCutDoNotMatter) {
  TestMatrix x = RandomMatrix(Dtype::kFloat32, 1, 30);
  x.values[20] = std::numeric_limits<float>::quiet_NaN();
  x = Matrix(Dtype::kFloat32, 1, 30, x.values);
  TestBatch batch({1}, 20);
  Finish(batch, x);
  EXPECT_EQ(statuses_[0], RowStatus::kOk);
  EXPECT_NEAR(Length(rows_.data(), 20), 1.0, 1e-6);
}

TEST_P(FinishRowsTest, AZeroRowStaysZero) {
  const TestMatrix x = Matrix(Dtype::kFloat32, 1, 16, std::vector<float>(16, 0.0F));
  Finish(TestBatch({1}, 16), x);
  EXPECT_EQ(statuses_[0], RowStatus::kOk);
  EXPECT_EQ(rows_, std::vector<float>(16, 0.0F));
}

TEST_P(FinishRowsTest, HugeAndTinyRowsKeepTheirDirection) {
  for (const float size : {1e30F, 1e-10F}) {
    const TestMatrix x = Matrix(Dtype::kFloat32, 1, 4, {3 * size, 0, 4 * size, 0});
    Finish(TestBatch({1}, 4), x);
    EXPECT_EQ(statuses_[0], RowStatus::kOk);
    EXPECT_NEAR(rows_[0], 0.6, 1e-6);
    EXPECT_NEAR(rows_[2], 0.8, 1e-6);
  }
}

TEST_P(FinishRowsTest, NormalizeRowsScalesInPlace) {
  TestMatrix x = RandomMatrix(Dtype::kFloat32, 37, 55, 4.0F);
  for (size_t i = 0; i < 55; ++i) {
    x.values[5 * 55 + i] = 0;
  }
  x = Matrix(Dtype::kFloat32, 37, 55, x.values);
  const std::vector<float> before = x.values;
  RunStep([&] { backend().NormalizeRows(x.view()); });
  Fetch(&x);
  for (int64_t row = 0; row < 37; ++row) {
    const double length = std::max(Length(before.data() + row * 55, 55), 1e-12);
    for (int64_t i = 0; i < 55; ++i) {
      ASSERT_NEAR(x.at(row, i), before[static_cast<size_t>(row * 55 + i)] / length, 1e-6);
    }
  }
}

}  // namespace
}  // namespace bouquet::rose
