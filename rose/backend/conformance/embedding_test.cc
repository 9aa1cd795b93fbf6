#include <cmath>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

class EmbeddingTest : public BackendTest {
 protected:
  struct Case {
    int64_t width = 64;
    bool position = true;
    bool token_type = true;
    bool ids_of_types = true;
    int32_t position_offset = 0;
    NormKind norm = NormKind::kLayerNorm;
    bool bias = true;
  };

  void Check(const Case& test) {
    FinishLoading();
    const TestMatrix word = RandomMatrix(dtype(), 50, test.width);
    const TestMatrix position = RandomMatrix(dtype(), 42, test.width);
    const TestMatrix type = RandomMatrix(dtype(), 2, test.width);
    const TestMatrix gain = RandomMatrix(Dtype::kFloat32, 1, test.width, 0.3F, 1.0F);
    const TestMatrix bias = RandomMatrix(Dtype::kFloat32, 1, test.width);
    TestBatch batch({7, 1, 40, 3});
    for (size_t token = 0; token < batch.token_ids.size(); ++token) {
      batch.token_ids[token] = static_cast<int32_t>(random()() % 50);
      batch.token_type_ids[token] = static_cast<int32_t>(random()() % 2);
    }
    StepInputs inputs = batch.inputs();
    if (!test.ids_of_types) {
      inputs.token_type_ids = nullptr;
    }
    EmbeddingDesc desc;
    desc.word = word.view();
    desc.position = test.position ? position.view() : TensorView{};
    desc.token_type = test.token_type ? type.view() : TensorView{};
    desc.position_offset = test.position_offset;
    desc.norm_kind = test.norm;
    desc.norm = {gain.view(), test.bias ? bias.view() : TensorView{}, 1e-12F};
    TestMatrix out = PoisonedMatrix(dtype(), inputs.num_tokens, test.width);
    RunStep(inputs, [&](const StepInputs& given) { backend().Embed(desc, given, out.view()); });
    Fetch(&out);

    for (int64_t token = 0; token < inputs.num_tokens; ++token) {
      std::vector<double> sum(static_cast<size_t>(test.width));
      double mean = 0;
      for (int64_t i = 0; i < test.width; ++i) {
        const auto index = static_cast<size_t>(token);
        double value = word.at(batch.token_ids[index], i);
        value +=
            test.position ? position.at(batch.positions[index] + test.position_offset, i) : 0.0;
        value +=
            test.token_type ? type.at(test.ids_of_types ? batch.token_type_ids[index] : 0, i) : 0.0;
        sum[static_cast<size_t>(i)] = value;
        mean += value / static_cast<double>(test.width);
      }
      if (test.norm == NormKind::kRmsNorm) {
        mean = 0;
      }
      double variance = 0;
      for (const double value : sum) {
        variance += (value - mean) * (value - mean) / static_cast<double>(test.width);
      }
      for (int64_t i = 0; i < test.width; ++i) {
        double expected = sum[static_cast<size_t>(i)];
        double scale = 1;
        if (test.norm != NormKind::kNone) {
          scale = gain.at(0, i) / std::sqrt(variance + 1e-12);
          expected = (expected - mean) * scale + (test.bias ? bias.at(0, i) : 0.0);
        }
        ASSERT_NEAR(out.at(token, i), expected,
                    Tolerance(dtype(), expected, 4 + 4 * std::abs(scale)))
            << "token " << token << ", column " << i;
      }
    }
  }
};

INSTANTIATE_ON_ALL_BACKENDS(EmbeddingTest);

TEST_P(EmbeddingTest, AddsTablesAndNormalises) {
  for (const int64_t width : {1, 17, 64, 100, 384}) {
    Check({.width = width});
  }
}

TEST_P(EmbeddingTest, PositionsStartAtTheirOffset) { Check({.position_offset = 2}); }

TEST_P(EmbeddingTest, AbsentTablesAddNothing) {
  Check({.position = false, .token_type = false, .norm = NormKind::kNone});
  Check({.position = true, .token_type = false, .norm = NormKind::kRmsNorm, .bias = false});
}

TEST_P(EmbeddingTest, AbsentTypeIdsAreZero) { Check({.ids_of_types = false}); }

}  // namespace
}  // namespace bouquet::rose
