#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

using model::RowDtype;

constexpr RowDtype kAllDtypes[] = {RowDtype::kFloat32, RowDtype::kTanhInt8,
                                   RowDtype::kSignBitsMsbFirst, RowDtype::kSignBitsLsbFirst};

class FinishRowsTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) {
      FinishLoading();
    }
  }

  /// FinishRows of `x` as the batch's rows ask.
  void Finish(const TestBatch& batch, const TestMatrix& x) {
    stride_ = RowBytes(RowDtype::kFloat32, static_cast<size_t>(x.cols));
    slots_.assign(static_cast<size_t>(x.rows) * stride_, std::byte{0xff});  // NaN
    statuses_.assign(static_cast<size_t>(x.rows), RowStatus::kNotFinite);
    StepSlotMemory slot;
    slot.host = batch.inputs();
    slot.rows = slots_.data();
    slot.statuses = statuses_.data();
    Run(slot, [&](const StepInputs& inputs) { backend().FinishRows(inputs, x.view()); });
  }

  /// One row, in full.
  void FinishOne(const std::vector<float>& values, RowDtype dtype, bool is_normalized = false) {
    TestBatch batch({1});
    batch.ClearRows();
    const auto width = static_cast<int32_t>(values.size());
    batch.AddRow({0, 0, 1}, width, dtype, is_normalized);
    Finish(batch, Matrix(Dtype::kFloat32, 1, width, values));
  }

  std::vector<float> Floats(size_t row) const {
    std::vector<float> values(stride_ / sizeof(float));
    std::memcpy(values.data(), slots_.data() + row * stride_, stride_);
    return values;
  }
  std::vector<int8_t> Int8s(size_t row, size_t count) const {
    std::vector<int8_t> values(count);
    std::memcpy(values.data(), slots_.data() + row * stride_, count);
    return values;
  }
  std::vector<int> Bytes(size_t row, size_t count) const {
    std::vector<int> values;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(std::to_integer<int>(slots_[row * stride_ + i]));
    }
    return values;
  }

  static double Length(const float* row, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      squares += static_cast<double>(row[i]) * row[i];
    }
    return std::sqrt(squares);
  }

  /// clamp(round half to even(127 · tanh(x))), where another value may be right only beside a half.
  static void ExpectTanhInt8(int value, double x) {
    const double exact = 127.0 * std::tanh(x);
    const double rounded = std::clamp(std::nearbyint(exact), -128.0, 127.0);
    if (std::abs(std::abs(exact - std::trunc(exact)) - 0.5) < 1e-9) {
      EXPECT_NEAR(value, exact, 0.5 + 1e-9) << "of " << x;
    } else {
      EXPECT_EQ(value, rounded) << "of " << x;
    }
  }

  size_t stride_ = 0;
  std::vector<std::byte> slots_;
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
    const std::vector<float> values = Floats(index);
    for (int64_t i = 0; i < kWidth; ++i) {
      const double expected = i < dimensions ? source[i] * scale : 0;
      ASSERT_NEAR(values[static_cast<size_t>(i)], expected, 1e-6)
          << "row " << row << ", column " << i;
    }
  }
}

TEST_P(FinishRowsTest, TanhInt8IsRoundedToTheNearest) {
  std::vector<float> values = RandomValues(3000);
  for (const float value :
       {0.0F, -0.0F, 1e-30F, -1e-30F, 3.9e-3F, 4e-3F, 20.0F, -20.0F, 1e30F, -1e30F,
        std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}) {
    values.push_back(value);
  }
  FinishOne(values, RowDtype::kTanhInt8);
  EXPECT_EQ(statuses_[0], RowStatus::kOk);
  const std::vector<int8_t> written = Int8s(0, values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ExpectTanhInt8(written[i], static_cast<double>(values[i]));
  }
  // Not truncated, not away from zero, and −128 never occurs.
  EXPECT_EQ(*std::ranges::min_element(written), -127);
  EXPECT_EQ(*std::ranges::max_element(written), 127);
}

// The float32 on both sides of where 127 · tanh(x) is a half: what a device with another tanh, or
// with a product in float32, would get wrong.
TEST_P(FinishRowsTest, TanhInt8ChangesWhereItsArgumentPassesAHalf) {
  std::vector<float> values;
  std::vector<int> expected;
  for (int level = -126; level < 127; ++level) {
    const double boundary = std::atanh((level + 0.5) / 127.0);
    const float near = static_cast<float>(boundary);
    const float infinity = std::numeric_limits<float>::infinity();
    values.push_back(std::nextafter(std::nextafter(near, -infinity), -infinity));
    expected.push_back(level);
    values.push_back(std::nextafter(std::nextafter(near, infinity), infinity));
    expected.push_back(level + 1);
  }
  FinishOne(values, RowDtype::kTanhInt8);
  const std::vector<int8_t> written = Int8s(0, values.size());
  EXPECT_EQ(std::vector<int>(written.begin(), written.end()), expected);
}

TEST_P(FinishRowsTest, OneHotSignsShowTheBitOrder) {
  for (int hot = 0; hot < 16; ++hot) {
    std::vector<float> values(16, -1.0F);
    values[static_cast<size_t>(hot)] = 1.0F;
    FinishOne(values, RowDtype::kSignBitsMsbFirst);
    std::vector<int> expected(2, 0);
    expected[static_cast<size_t>(hot / 8)] = 0x80 >> hot % 8;
    EXPECT_EQ(Bytes(0, 2), expected) << hot;
    FinishOne(values, RowDtype::kSignBitsLsbFirst);
    expected[static_cast<size_t>(hot / 8)] = 1 << hot % 8;
    EXPECT_EQ(Bytes(0, 2), expected) << hot;
  }
}

TEST_P(FinishRowsTest, ZeroOfEitherSignHasItsBitAndNoNegativeNumberHas) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values = {0.0F, -0.0F, kTiny, -kTiny, -1e-3F, 1e30F, -1e30F, 1.0F};
  FinishOne(values, RowDtype::kSignBitsLsbFirst);
  EXPECT_EQ(Bytes(0, 1)[0], 0b10100111);
  FinishOne(values, RowDtype::kSignBitsMsbFirst);
  EXPECT_EQ(Bytes(0, 1)[0], 0b11100101);
}

TEST_P(FinishRowsTest, SignBitsAreThoseOfTheUnquantisedValue) {
  // Quantised to int8 first, it would be 0, whose bit is 1.
  FinishOne(std::vector<float>(8, -0.001F), RowDtype::kTanhInt8);
  EXPECT_EQ(Bytes(0, 8), std::vector<int>(8, 0));
  FinishOne(std::vector<float>(8, -0.001F), RowDtype::kSignBitsMsbFirst);
  EXPECT_EQ(Bytes(0, 1)[0], 0);
}

// All formats, widths and cuts side by side in one step: each is the encoding of the float32 row
// that the same request gives, and zeros lie behind it.
TEST_P(FinishRowsTest, ARowInEveryFormatIsMadeFromItsFloat32Row) {
  for (const int32_t width : {8, 9, 10, 36, 50, 64, 259, 384, 1024, 1100}) {
    TestBatch batch({1});
    batch.ClearRows();
    TestBatch floats = batch;
    for (int32_t row = 0; row < 120; ++row) {
      const RowDtype dtype = kAllDtypes[row % 4];
      int32_t dimensions = row < 4 ? width : 1 + static_cast<int32_t>(random()() % width);
      if (IsSignBits(dtype)) {
        dimensions = std::max(dimensions / 8 * 8, 8);
      }
      batch.AddRow({0, 0, 1}, dimensions, dtype, row % 3 == 0);
      floats.AddRow({0, 0, 1}, dimensions, RowDtype::kFloat32, row % 3 == 0);
    }
    const TestMatrix x = RandomMatrix(Dtype::kFloat32, 120, width, 1.5F);
    Finish(floats, x);
    const std::vector<std::byte> float_slots = slots_;
    Finish(batch, x);
    for (size_t row = 0; row < 120; ++row) {
      ASSERT_EQ(statuses_[row], RowStatus::kOk);
      std::vector<float> source(static_cast<size_t>(width));
      std::memcpy(source.data(), float_slots.data() + row * stride_, stride_);
      const auto dimensions = static_cast<size_t>(batch.dimensions[row]);
      const RowDtype dtype = batch.dtypes[row];
      const std::vector<int> written = Bytes(row, stride_);
      for (size_t i = 0; i < dimensions && dtype == RowDtype::kTanhInt8; ++i) {
        ExpectTanhInt8(static_cast<int8_t>(written[i]), static_cast<double>(source[i]));
      }
      for (size_t i = 0; i < dimensions && IsSignBits(dtype); ++i) {
        const size_t bit = dtype == RowDtype::kSignBitsMsbFirst ? 7 - i % 8 : i % 8;
        ASSERT_EQ(written[i / 8] >> bit & 1, source[i] >= 0 ? 1 : 0)
            << "width " << width << ", row " << row << ", column " << i;
      }
      if (dtype == RowDtype::kFloat32) {
        ASSERT_EQ(Floats(row), source);
      }
      for (size_t i = RowBytes(dtype, dimensions); i < stride_; ++i) {
        ASSERT_EQ(written[i], 0) << "width " << width << ", row " << row << ", byte " << i;
      }
    }
  }
}

TEST_P(FinishRowsTest, MarksOnlyTheRowsThatAreNotFiniteAndZeroesThem) {
  TestMatrix x = RandomMatrix(Dtype::kFloat32, 40, 32);
  x.values[3 * 32 + 4] = std::numeric_limits<float>::quiet_NaN();
  x.values[17 * 32] = std::numeric_limits<float>::infinity();
  x.values[30 * 32] = std::numeric_limits<float>::quiet_NaN();
  x.values[39 * 32 + 31] = -std::numeric_limits<float>::infinity();
  x = Matrix(Dtype::kFloat32, 40, 32, x.values);
  for (const RowDtype dtype : kAllDtypes) {
    TestBatch batch(std::vector<int32_t>(40, 1), 32);
    batch.dtypes.assign(40, dtype);
    for (size_t row = 0; row < 40; row += 2) {
      batch.normalize[row] = 0;
    }
    Finish(batch, x);
    for (size_t row = 0; row < 40; ++row) {
      const bool is_bad = row == 3 || row == 17 || row == 30 || row == 39;
      EXPECT_EQ(statuses_[row], is_bad ? RowStatus::kNotFinite : RowStatus::kOk) << row;
      const std::vector<int> written = Bytes(row, stride_);
      EXPECT_EQ(std::ranges::count(written, 0) == static_cast<int64_t>(stride_), is_bad) << row;
    }
  }
}

TEST_P(FinishRowsTest, ValuesBehindTheCutDoNotMatter) {
  TestMatrix x = RandomMatrix(Dtype::kFloat32, 4, 30);
  for (size_t row = 0; row < 4; ++row) {
    x.values[row * 30 + 24] = std::numeric_limits<float>::quiet_NaN();
  }
  x = Matrix(Dtype::kFloat32, 4, 30, x.values);
  TestBatch batch({1, 1, 1, 1}, 24);
  batch.dtypes.assign(std::begin(kAllDtypes), std::end(kAllDtypes));
  Finish(batch, x);
  EXPECT_EQ(statuses_, std::vector<RowStatus>(4, RowStatus::kOk));
  EXPECT_NEAR(Length(Floats(0).data(), 24), 1.0, 1e-6);
}

TEST_P(FinishRowsTest, AZeroRowStaysZero) {
  FinishOne(std::vector<float>(16, 0.0F), RowDtype::kFloat32, true);
  EXPECT_EQ(statuses_[0], RowStatus::kOk);
  EXPECT_EQ(Floats(0), std::vector<float>(16, 0.0F));
  FinishOne(std::vector<float>(16, 0.0F), RowDtype::kSignBitsMsbFirst, true);
  EXPECT_EQ(Bytes(0, 2), std::vector<int>(2, 0xff));
}

TEST_P(FinishRowsTest, HugeAndTinyRowsKeepTheirDirection) {
  for (const float size : {1e30F, 1e-10F}) {
    FinishOne({3 * size, 0, 4 * size, 0}, RowDtype::kFloat32, true);
    EXPECT_EQ(statuses_[0], RowStatus::kOk);
    EXPECT_NEAR(Floats(0)[0], 0.6, 1e-6);
    EXPECT_NEAR(Floats(0)[2], 0.8, 1e-6);
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
