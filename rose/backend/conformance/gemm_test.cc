#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

double Reference(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu: return std::max(x, 0.0);
    case Activation::kSilu: return x / (1 + std::exp(-x));
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
  }
  return 0;
}

struct GemmCase {
  int64_t rows = 1;
  int64_t in_features = 1;
  std::vector<int64_t> out_features;  // one per stacked weight
  bool bias = true;
  bool gated = false;
  bool residual = false;
  bool in_place_residual = false;
  Activation activation = Activation::kNone;
};

class GemmTest : public BackendTest {
 protected:
  struct Layer {
    std::vector<TestMatrix> weights;
    std::vector<TestMatrix> biases;
    std::unique_ptr<PackedWeight> packed;
  };

  /// `rows_dtype` chooses PackRows, else Pack.
  Layer MakeLayer(const GemmCase& test, bool for_rows) {
    Layer layer;
    LinearDesc desc;
    desc.gated = test.gated;
    desc.activation = test.activation;
    const Dtype weight_dtype = for_rows ? Dtype::kFloat32 : dtype();
    for (const int64_t features : test.out_features) {
      // Rounded to what the weight is kept in: a backend may keep biases as it keeps weights.
      layer.weights.push_back(RandomMatrix(weight_dtype, features, test.in_features));
      layer.biases.push_back(RandomMatrix(weight_dtype, 1, features, 1.0F, 0.5F));
      desc.weights.push_back(
          {layer.weights.back().values.data(), Dtype::kFloat32, features, test.in_features});
      if (test.bias) {
        desc.biases.push_back({layer.biases.back().values.data(), Dtype::kFloat32, 1, features});
      }
    }
    Result<std::unique_ptr<PackedWeight>> packed =
        for_rows ? backend().PackRows(desc) : backend().Pack(desc);
    EXPECT_TRUE(packed.ok()) << packed.status().ToString();
    layer.packed = std::move(packed).value();
    return layer;
  }

  /// x·Wᵀ + b of one output, before the epilogue.
  static double Product(const GemmCase& test, const Layer& layer, const TestMatrix& x, int64_t row,
                        int64_t feature) {
    size_t source = 0;
    while (feature >= layer.weights[source].rows) {
      feature -= layer.weights[source].rows;
      ++source;
    }
    double sum = test.bias ? layer.biases[source].at(0, feature) : 0.0;
    for (int64_t k = 0; k < test.in_features; ++k) {
      sum += x.at(row, k) * layer.weights[source].at(feature, k);
    }
    return sum;
  }

  void Check(const GemmCase& test, bool for_rows = false) {
    const Dtype data_dtype = for_rows ? Dtype::kFloat32 : dtype();
    const Layer layer = MakeLayer(test, for_rows);
    FinishLoading();
    int64_t total = 0;
    for (const int64_t features : test.out_features) {
      total += features;
    }
    const int64_t width = test.gated ? total / 2 : total;
    ASSERT_EQ(layer.packed->out_features, width);
    ASSERT_EQ(layer.packed->in_features, test.in_features);

    // Products of about unit size, so that activations are met where they bend.
    const float size = 1.0F / std::sqrt(static_cast<float>(test.in_features));
    const TestMatrix x = RandomMatrix(data_dtype, test.rows, test.in_features, 1.5F * size);
    const TestMatrix residual = RandomMatrix(data_dtype, test.rows, width);
    TestMatrix out = test.in_place_residual ? Matrix(data_dtype, test.rows, width, residual.values)
                                            : PoisonedMatrix(data_dtype, test.rows, width);
    GemmDesc desc;
    desc.weight = layer.packed.get();
    if (test.residual) {
      desc.residual = test.in_place_residual ? out.view() : residual.view();
    }
    RunStep([&] {
      if (for_rows) {
        backend().GemmRows(desc, x.view(), out.view());
      } else {
        backend().Gemm(desc, x.view(), out.view());
      }
    });
    Fetch(&out);
    for (int64_t row = 0; row < test.rows; ++row) {
      for (int64_t feature = 0; feature < width; ++feature) {
        const double first = Product(test, layer, x, row, feature);
        double expected = Reference(test.activation, first);
        double size_of_error = 4.0;
        if (test.gated) {
          const double up = Product(test, layer, x, row, width + feature);
          expected *= up;
          size_of_error = 4.0 * (1 + std::abs(up) + std::abs(first));
        }
        if (test.residual) {
          expected += residual.at(row, feature);
        }
        double tolerance =
            Tolerance(data_dtype, expected, size_of_error) +
            (test.activation == Activation::kNone
                 ? 0.0
                 : kActivationError * std::max(1.0, size_of_error * std::abs(first)));
        if (GetParam().is_cuda() && !for_rows) {
          // The product is rounded to bfloat16 before a bias or an epilogue meets it.
          const double bias = test.bias ? 2.0 : 0.0;
          tolerance += 0x1p-8 * size_of_error * (1 + std::abs(first) + bias);
        }
        ASSERT_NEAR(out.at(row, feature), expected, tolerance)
            << "row " << row << " of " << test.rows << ", feature " << feature << " of " << width;
      }
    }
  }
};

INSTANTIATE_ON_ALL_BACKENDS(GemmTest);

/// What a CPU promises beyond the contract.
class CpuGemmTest : public GemmTest {};
INSTANTIATE_ON_CPUS(CpuGemmTest);

TEST_P(GemmTest, MultipliesEveryNumberOfRows) {
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 16, 17, 31, 64, 100, 257}) {
    Check({.rows = rows, .in_features = 96, .out_features = {80}});
  }
}

TEST_P(GemmTest, TakesSizesThatFillNoPanel) {
  Check({.rows = 5, .in_features = 7, .out_features = {1}});
  Check({.rows = 13, .in_features = 33, .out_features = {3}});
  Check({.rows = 14, .in_features = 65, .out_features = {33}});
  Check({.rows = 3, .in_features = 1, .out_features = {130}});
  Check({.rows = 3, .in_features = 1536, .out_features = {40}});
}

TEST_P(GemmTest, StacksWeightsAlongTheOutput) {
  Check({.rows = 19, .in_features = 48, .out_features = {48, 16, 17}});
}

TEST_P(GemmTest, WorksWithoutBias) {
  Check({.rows = 9, .in_features = 64, .out_features = {64}, .bias = false});
}

TEST_P(GemmTest, AppliesEveryActivation) {
  for (const Activation activation : {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu,
                                      Activation::kSilu, Activation::kTanh, Activation::kSigmoid}) {
    Check({.rows = 21, .in_features = 64, .out_features = {72}, .activation = activation});
  }
}

TEST_P(GemmTest, MultipliesActivatedGatesWithUps) {
  for (const Activation activation :
       {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
    Check({.rows = 17,
           .in_features = 40,
           .out_features = {50, 50},
           .bias = activation == Activation::kGelu,
           .gated = true,
           .activation = activation});
  }
}

TEST_P(GemmTest, AddsResidualAfterTheActivation) {
  Check({.rows = 30, .in_features = 64, .out_features = {70}, .residual = true});
  Check({.rows = 30,
         .in_features = 64,
         .out_features = {70},
         .residual = true,
         .activation = Activation::kGelu});
  Check({.rows = 12,
         .in_features = 24,
         .out_features = {20, 20},
         .gated = true,
         .residual = true,
         .activation = Activation::kSilu});
}

TEST_P(GemmTest, AddsResidualThatIsTheOutputItself) {
  Check({.rows = 30,
         .in_features = 64,
         .out_features = {70},
         .residual = true,
         .in_place_residual = true});
}

TEST_P(GemmTest, MultipliesFloat32RowsWhateverTheComputeDtype) {
  Check({.rows = 3, .in_features = 96, .out_features = {41}, .activation = Activation::kTanh},
        /*for_rows=*/true);
}

TEST_P(CpuGemmTest, GivesARowTheSameBitsInEveryBatch) {
  const GemmCase test{
      .rows = 100, .in_features = 96, .out_features = {80}, .activation = Activation::kGelu};
  const Layer layer = MakeLayer(test, false);
  FinishLoading();
  const TestMatrix x = RandomMatrix(dtype(), test.rows, test.in_features);
  TestMatrix together = PoisonedMatrix(dtype(), test.rows, 80);
  TestMatrix alone = PoisonedMatrix(dtype(), test.rows, 80);
  GemmDesc desc;
  desc.weight = layer.packed.get();
  RunStep([&] {
    backend().Gemm(desc, x.view(), together.view());
    for (int64_t row = 0; row < test.rows; ++row) {
      backend().Gemm(desc, x.view().Rows(row, 1), alone.view().Rows(row, 1));
    }
  });
  Fetch(&together);
  Fetch(&alone);
  EXPECT_EQ(together.values, alone.values);
}

TEST_P(GemmTest, NormalisesItsInputFirst) {
  const int64_t rows = 18;
  const int64_t width = 72;
  const GemmCase test{.rows = rows, .in_features = width, .out_features = {40}};
  const Layer layer = MakeLayer(test, false);
  FinishLoading();
  const TestMatrix x = RandomMatrix(dtype(), rows, width, 3.0F, 1.0F);
  const TestMatrix gain = RandomMatrix(Dtype::kFloat32, 1, width, 0.1F, 0.2F);
  TestMatrix normed = PoisonedMatrix(dtype(), rows, width);
  TestMatrix expected = PoisonedMatrix(dtype(), rows, 40);
  TestMatrix fused = PoisonedMatrix(dtype(), rows, 40);
  GemmDesc desc;
  desc.weight = layer.packed.get();
  const NormDesc norm{NormKind::kRmsNorm, {gain.view(), {}, 1e-6F}};
  RunStep([&] {
    backend().Norm(norm, x.view(), {}, {}, normed.view());
    backend().Gemm(desc, normed.view(), expected.view());
    desc.prologue = norm;
    backend().Gemm(desc, x.view(), fused.view());
  });
  Fetch(&expected);
  Fetch(&fused);
  EXPECT_EQ(fused.values, expected.values);
}

TEST_P(GemmTest, RefusesWeightsThatDoNotFitTogether) {
  const TestMatrix wide = RandomMatrix(Dtype::kFloat32, 4, 8);
  const TestMatrix narrow = RandomMatrix(Dtype::kFloat32, 4, 6);
  LinearDesc desc;
  EXPECT_EQ(backend().Pack(desc).code(), StatusCode::kInvalidArgument);
  desc.weights = {{wide.view().data, Dtype::kFloat32, 4, 8},
                  {narrow.view().data, Dtype::kFloat32, 4, 6}};
  EXPECT_EQ(backend().Pack(desc).code(), StatusCode::kInvalidArgument);
  desc.weights.resize(1);
  desc.biases = {{wide.view().data, Dtype::kFloat32, 1, 3}};
  EXPECT_EQ(backend().Pack(desc).code(), StatusCode::kInvalidArgument);
  desc.biases.clear();
  desc.weights[0].dtype = Dtype::kInt64;
  EXPECT_EQ(backend().Pack(desc).code(), StatusCode::kInvalidArgument);
  desc.weights[0] = {wide.view().data, Dtype::kFloat32, 3, 8};
  desc.gated = true;
  EXPECT_EQ(backend().Pack(desc).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace bouquet::rose
