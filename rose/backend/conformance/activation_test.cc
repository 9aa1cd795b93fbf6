#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

/// Activations over the whole range of float32, through a product with the identity.
class ActivationTest : public BackendTest {
 protected:
  static constexpr int64_t kWidth = 64;

  static std::vector<float> Samples() {
    std::vector<float> samples;
    for (int i = -4000; i <= 4000; ++i) {
      samples.push_back(static_cast<float>(i) * 0.005F);
    }
    for (const float size : {1e-30F, 1e-8F, 1e-4F, 30.0F, 88.0F, 89.5F, 104.0F, 1e4F, 1e20F}) {
      samples.push_back(size);
      samples.push_back(-size);
    }
    samples.resize((samples.size() + kWidth - 1) / kWidth * kWidth, 0.0F);
    return samples;
  }

  /// The activation of each sample.
  std::vector<float> Apply(Activation activation, TestMatrix* x) {
    std::vector<float> identity(kWidth * kWidth, 0.0F);
    for (int64_t i = 0; i < kWidth; ++i) {
      identity[static_cast<size_t>(i * kWidth + i)] = 1.0F;
    }
    LinearDesc desc;
    desc.weights = {{identity.data(), Dtype::kFloat32, kWidth, kWidth}};
    desc.activation = activation;
    const std::unique_ptr<PackedWeight> packed = std::move(backend().PackRows(desc)).value();
    FinishLoading();
    TestMatrix out = PoisonedMatrix(Dtype::kFloat32, x->rows, kWidth);
    RunStep([&] {
      backend().GemmRows({packed.get(), {NormKind::kNone, {}}, {}}, x->view(), out.view());
    });
    Fetch(&out);
    return out.values;
  }

  /// `error` is absolute for results up to 1 and relative above.
  template <class Reference>
  void Check(Activation activation, double error, const Reference& reference) {
    std::vector<float> samples = Samples();
    const auto rows = static_cast<int64_t>(samples.size()) / kWidth;
    TestMatrix x = Matrix(Dtype::kFloat32, rows, kWidth, samples);
    const std::vector<float> results = Apply(activation, &x);
    for (size_t i = 0; i < samples.size(); ++i) {
      const double expected = reference(static_cast<double>(samples[i]));
      ASSERT_NEAR(results[i], expected, error * std::max(1.0, std::abs(expected)))
          << "x = " << samples[i];
    }
  }
};

INSTANTIATE_ON_ALL_BACKENDS(ActivationTest);

TEST_P(ActivationTest, GeluIsExact) {
  Check(Activation::kGelu, 2e-7, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
}

TEST_P(ActivationTest, GeluTanhIsExact) {
  Check(Activation::kGeluTanh, 3e-7, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

TEST_P(ActivationTest, ReluIsExact) {
  Check(Activation::kRelu, 0, [](double x) { return std::max(x, 0.0); });
}

TEST_P(ActivationTest, SiluIsExact) {
  Check(Activation::kSilu, 3e-7, [](double x) { return x / (1 + std::exp(-x)); });
}

TEST_P(ActivationTest, TanhIsExact) {
  Check(Activation::kTanh, 2e-7, [](double x) { return std::tanh(x); });
}

TEST_P(ActivationTest, SigmoidIsExact) {
  Check(Activation::kSigmoid, 2e-7, [](double x) { return 1 / (1 + std::exp(-x)); });
}

TEST_P(ActivationTest, ANanStaysANan) {
  for (const Activation activation :
       {Activation::kNone, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu,
        Activation::kSilu, Activation::kTanh, Activation::kSigmoid}) {
    TestMatrix x = PoisonedMatrix(Dtype::kFloat32, 1, kWidth);
    for (const float value : Apply(activation, &x)) {
      ASSERT_TRUE(std::isnan(value));
    }
  }
}

}  // namespace
}  // namespace bouquet::rose
