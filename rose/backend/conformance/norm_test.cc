#include <cmath>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

class NormTest : public BackendTest {
 protected:
  struct Case {
    NormKind kind = NormKind::kLayerNorm;
    int64_t rows = 1;
    int64_t width = 1;
    bool bias = true;
    bool residual = false;
    bool sum = false;
    float centre = 0.0F;
  };

  void Check(const Case& test) {
    FinishLoading();
    const TestMatrix x = RandomMatrix(dtype(), test.rows, test.width, 2.0F, test.centre);
    const TestMatrix residual = RandomMatrix(dtype(), test.rows, test.width);
    const TestMatrix gain = RandomMatrix(Dtype::kFloat32, 1, test.width, 0.3F, 1.0F);
    const TestMatrix bias = RandomMatrix(Dtype::kFloat32, 1, test.width, 0.3F);
    TestMatrix sum = PoisonedMatrix(dtype(), test.rows, test.width);
    TestMatrix out = PoisonedMatrix(dtype(), test.rows, test.width);
    const float epsilon = 1e-5F;
    const NormDesc desc{test.kind, {gain.view(), test.bias ? bias.view() : TensorView{}, epsilon}};
    RunStep([&] {
      backend().Norm(desc, x.view(), test.residual ? residual.view() : TensorView{},
                     test.sum ? sum.view() : TensorView{}, out.view());
    });
    Fetch(&out);
    Fetch(&sum);
    for (int64_t row = 0; row < test.rows; ++row) {
      double mean = 0;
      double variance = 0;
      const auto value = [&](int64_t i) {
        return x.at(row, i) + (test.residual ? residual.at(row, i) : 0.0);
      };
      for (int64_t i = 0; i < test.width; ++i) {
        mean += value(i) / static_cast<double>(test.width);
      }
      if (test.kind == NormKind::kRmsNorm) {
        mean = 0;
      }
      for (int64_t i = 0; i < test.width; ++i) {
        variance += (value(i) - mean) * (value(i) - mean) / static_cast<double>(test.width);
      }
      for (int64_t i = 0; i < test.width; ++i) {
        const double scale = gain.at(0, i) / std::sqrt(variance + epsilon);
        const double expected = (value(i) - mean) * scale + (test.bias ? bias.at(0, i) : 0.0);
        const double size = 4 + std::abs(scale) * (std::abs(test.centre) + 4);
        ASSERT_NEAR(out.at(row, i), expected, Tolerance(dtype(), expected, size))
            << "row " << row << ", column " << i << " of " << test.width;
        if (test.sum) {
          ASSERT_NEAR(sum.at(row, i), value(i), Tolerance(dtype(), value(i), 0));
        }
      }
    }
  }
};

INSTANTIATE_ON_ALL_BACKENDS(NormTest);

TEST_P(NormTest, LayerNormOfEveryWidth) {
  for (const int64_t width : {1, 2, 3, 15, 16, 17, 31, 48, 312, 384, 1024}) {
    Check({.rows = 3, .width = width});
  }
}

TEST_P(NormTest, RmsNormOfEveryWidth) {
  for (const int64_t width : {1, 2, 3, 15, 16, 17, 31, 48, 312, 384, 1024}) {
    Check({.kind = NormKind::kRmsNorm, .rows = 3, .width = width, .bias = false});
  }
}

TEST_P(NormTest, ManyRowsAreSharedOut) { Check({.rows = 257, .width = 96}); }

TEST_P(NormTest, AddsResidualAndReturnsTheSum) {
  Check({.rows = 33, .width = 100, .residual = true});
  Check({.rows = 33, .width = 100, .residual = true, .sum = true});
  Check({.kind = NormKind::kRmsNorm,
         .rows = 33,
         .width = 100,
         .bias = false,
         .residual = true,
         .sum = true});
}

TEST_P(NormTest, LayerNormWorksWithoutBias) { Check({.rows = 4, .width = 64, .bias = false}); }

TEST_P(NormTest, KeepsItsPrecisionFarFromZero) {
  // One pass of Σx² − (Σx)²/n would lose everything here.
  Check({.rows = 8, .width = 384, .centre = 300.0F});
}

TEST_P(NormTest, ResultMayReplaceItsInput) {
  FinishLoading();
  const TestMatrix x = RandomMatrix(dtype(), 20, 72);
  const TestMatrix residual = RandomMatrix(dtype(), 20, 72);
  const TestMatrix gain = RandomMatrix(Dtype::kFloat32, 1, 72);
  TestMatrix apart = PoisonedMatrix(dtype(), 20, 72);
  TestMatrix in_place = Matrix(dtype(), 20, 72, x.values);
  TestMatrix sum = Matrix(dtype(), 20, 72, residual.values);
  const NormDesc desc{NormKind::kRmsNorm, {gain.view(), {}, 1e-6F}};
  RunStep([&] {
    backend().Norm(desc, x.view(), residual.view(), {}, apart.view());
    backend().Norm(desc, in_place.view(), sum.view(), sum.view(), in_place.view());
  });
  Fetch(&apart);
  Fetch(&in_place);
  Fetch(&sum);
  EXPECT_EQ(apart.values, in_place.values);
  for (int64_t i = 0; i < 72; ++i) {
    const double expected = x.at(0, i) + residual.at(0, i);
    EXPECT_NEAR(sum.at(0, i), expected, Tolerance(dtype(), expected, 0));
  }
}

TEST_P(NormTest, ANanStaysInItsRow) {
  FinishLoading();
  TestMatrix x = RandomMatrix(dtype(), 3, 40);
  x.values[40 + 7] = std::numeric_limits<float>::quiet_NaN();
  x = Matrix(dtype(), 3, 40, x.values);
  const TestMatrix gain = RandomMatrix(Dtype::kFloat32, 1, 40);
  TestMatrix out = PoisonedMatrix(dtype(), 3, 40);
  RunStep([&] {
    backend().Norm({NormKind::kLayerNorm, {gain.view(), gain.view(), 1e-5F}}, x.view(), {}, {},
                   out.view());
  });
  Fetch(&out);
  EXPECT_TRUE(std::isfinite(out.at(0, 7)));
  EXPECT_TRUE(std::isnan(out.at(1, 7)));
  EXPECT_TRUE(std::isfinite(out.at(2, 7)));
}

}  // namespace
}  // namespace bouquet::rose
