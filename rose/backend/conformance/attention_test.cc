#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/conformance/backend_test.h"

namespace bouquet::rose {
namespace {

struct AttentionCase {
  std::vector<int32_t> lengths;
  int32_t num_heads = 2;
  int32_t num_kv_heads = 2;
  int32_t head_dim = 32;
  AttentionMask mask = AttentionMask::kBidirectional;
  int32_t window = 0;
  bool query_key_norm = false;
  bool rope = false;
  int32_t first_position = 0;
  float score_size = 1.0F;
  int32_t max_distance = -1;  // of a relative bias; below 0: none
};

class AttentionTest : public BackendTest {
 protected:
  /// Queries or keys after norm and rotation, in double precision.
  static std::vector<double> Prepared(const AttentionCase& test, const TestMatrix& qkv,
                                      int64_t token, int64_t head, const TestMatrix& gain,
                                      double epsilon, int32_t position, double theta) {
    const int64_t dim = test.head_dim;
    std::vector<double> x(static_cast<size_t>(dim));
    double squares = 0;
    for (int64_t d = 0; d < dim; ++d) {
      x[static_cast<size_t>(d)] = qkv.at(token, head * dim + d);
      squares += x[static_cast<size_t>(d)] * x[static_cast<size_t>(d)];
    }
    if (test.query_key_norm) {
      for (int64_t d = 0; d < dim; ++d) {
        x[static_cast<size_t>(d)] *=
            gain.at(0, d) / std::sqrt(squares / static_cast<double>(dim) + epsilon);
      }
    }
    if (test.rope) {
      std::vector<double> rotated(x.size());
      for (int64_t d = 0; d < dim / 2; ++d) {
        const auto first = static_cast<size_t>(d);
        const auto second = static_cast<size_t>(d + dim / 2);
        const double angle =
            position * std::pow(theta, -2.0 * static_cast<double>(d) / static_cast<double>(dim));
        rotated[first] = x[first] * std::cos(angle) - x[second] * std::sin(angle);
        rotated[second] = x[second] * std::cos(angle) + x[first] * std::sin(angle);
      }
      x = rotated;
    }
    return x;
  }

  static bool IsVisible(const AttentionCase& test, int32_t query, int32_t key) {
    if (test.mask == AttentionMask::kCausal && key > query) {
      return false;
    }
    return test.window == 0 || std::abs(query - key) <= test.window;
  }

  /// A random number per head and distance, its ends repeated.
  TestMatrix RandomBias(const AttentionCase& test) {
    if (test.max_distance < 0) {
      return {};
    }
    constexpr int32_t kMargin = RelativeBias::kMargin;
    const int32_t centre = test.max_distance + kMargin;
    const int64_t cols = 2 * centre + 1;
    std::vector<float> values = RandomValues(test.num_heads * cols, 2.0F);
    for (int64_t head = 0; head < test.num_heads; ++head) {
      float* row = values.data() + head * cols;
      for (int32_t i = 0; i < kMargin; ++i) {
        row[i] = row[kMargin];
        row[cols - 1 - i] = row[cols - 1 - kMargin];
      }
    }
    return Matrix(Dtype::kFloat32, test.num_heads, cols, values);
  }

  static double BiasOf(const AttentionCase& test, const TestMatrix& bias, int64_t head,
                       int32_t distance) {
    if (test.max_distance < 0) {
      return 0;
    }
    const int32_t column = std::clamp(distance, -test.max_distance, test.max_distance);
    return bias.at(head, bias.cols / 2 + column);
  }

  void Check(const AttentionCase& test) {
    FinishLoading();
    TestBatch batch(test.lengths);
    for (int32_t& position : batch.positions) {
      position += test.first_position;
    }
    const int64_t tokens = batch.inputs().num_tokens;
    const int64_t dim = test.head_dim;
    const int64_t group = test.num_heads / test.num_kv_heads;
    const TestMatrix original = RandomMatrix(
        dtype(), tokens, (test.num_heads + 2 * test.num_kv_heads) * dim, test.score_size);
    const TestMatrix qkv = Matrix(dtype(), tokens, original.cols, original.values);
    const TestMatrix query_gain = RandomMatrix(Dtype::kFloat32, 1, dim, 0.3F, 1.0F);
    const TestMatrix key_gain = RandomMatrix(Dtype::kFloat32, 1, dim, 0.3F, 1.0F);
    const TestMatrix bias = RandomBias(test);
    TestMatrix out = PoisonedMatrix(dtype(), tokens, test.num_heads * dim);
    AttentionDesc desc;
    desc.num_heads = test.num_heads;
    desc.num_kv_heads = test.num_kv_heads;
    desc.head_dim = test.head_dim;
    desc.scale = 1.0F / std::sqrt(static_cast<float>(dim));
    desc.mask = test.mask;
    desc.window = test.window;
    desc.rope = {test.rope, 1e4F};
    if (test.query_key_norm) {
      desc.query_norm = {query_gain.view(), {}, 1e-6F};
      desc.key_norm = {key_gain.view(), {}, 1e-6F};
    }
    desc.relative_bias = {bias.view()};
    RunStep(batch.inputs(), [&](const StepInputs& inputs) {
      backend().Attention(desc, inputs, qkv.view(), out.view());
    });
    Fetch(&out);

    for (size_t sequence = 0; sequence < test.lengths.size(); ++sequence) {
      const int32_t first = batch.offsets[sequence];
      const int32_t length = test.lengths[sequence];
      for (int64_t head = 0; head < test.num_heads; ++head) {
        const int64_t kv_head = head / group;
        std::vector<std::vector<double>> keys;
        for (int32_t key = 0; key < length; ++key) {
          keys.push_back(Prepared(test, original, first + key, test.num_heads + kv_head, key_gain,
                                  1e-6, key + test.first_position, 1e4));
        }
        // Every query of short sequences, about 60 of long ones.
        const int32_t stride = std::max(1, length / 60);
        for (int32_t query = 0; query < length; query += stride) {
          CheckRow(test, batch, original, keys, query_gain, bias, first, query, head, out);
        }
      }
    }
  }

  void CheckRow(const AttentionCase& test, const TestBatch& batch, const TestMatrix& original,
                const std::vector<std::vector<double>>& keys, const TestMatrix& query_gain,
                const TestMatrix& bias, int32_t first, int32_t query, int64_t head,
                const TestMatrix& out) {
    const int64_t dim = test.head_dim;
    const int64_t kv_head = head / (test.num_heads / test.num_kv_heads);
    const int64_t value_column = (test.num_heads + test.num_kv_heads + kv_head) * dim;
    const std::vector<double> q =
        Prepared(test, original, first + query, head, query_gain, 1e-6,
                 batch.positions[static_cast<size_t>(first + query)], 1e4);
    std::vector<double> weights(keys.size(), 0.0);
    double largest = -1e300;
    double score_size = 0;
    for (size_t key = 0; key < keys.size(); ++key) {
      if (IsVisible(test, query, static_cast<int32_t>(key))) {
        double score = 0;
        for (size_t d = 0; d < q.size(); ++d) {
          score += q[d] * keys[key][d];
        }
        weights[key] = score / std::sqrt(static_cast<double>(dim)) +
                       BiasOf(test, bias, head, static_cast<int32_t>(key) - query);
        largest = std::max(largest, weights[key]);
        score_size = std::max(score_size, std::abs(weights[key]));
      }
    }
    double total = 0;
    for (size_t key = 0; key < keys.size(); ++key) {
      const bool visible = IsVisible(test, query, static_cast<int32_t>(key));
      weights[key] = visible ? std::exp(weights[key] - largest) : 0.0;
      total += weights[key];
    }
    for (int64_t d = 0; d < dim; ++d) {
      double expected = 0;
      double size = 0;
      for (size_t key = 0; key < keys.size(); ++key) {
        const double term =
            weights[key] / total * original.at(first + static_cast<int64_t>(key), value_column + d);
        expected += term;
        size += std::abs(term);
      }
      // An error e of a score changes its weight by the factor 1 + e. Rotated queries and keys are
      // rounded to bfloat16 in place, and that error reaches the scores.
      double tolerance = Tolerance(dtype(), expected, size * (2 + score_size));
      if (dtype() == Dtype::kBfloat16 && (test.rope || test.query_key_norm)) {
        tolerance += 0x1p-7 * size * (1 + score_size);
      }
      if (GetParam().is_cuda()) {  // weights are rounded to bfloat16 before they meet the values
        tolerance += 0x1p-8 * size;
      }
      if (test.rope) {  // float32 angles
        tolerance += 3e-7 * (1 + test.first_position + static_cast<double>(keys.size())) * size *
                     (1 + score_size);
      }
      ASSERT_NEAR(out.at(first + query, head * dim + d), expected, tolerance)
          << "query " << query << " of " << keys.size() << ", head " << head << ", column " << d;
    }
  }
};

INSTANTIATE_ON_ALL_BACKENDS(AttentionTest);

TEST_P(AttentionTest, RaggedSequencesOfVeryUnequalLengths) {
  Check({.lengths = {1, 600, 2, 17, 1, 64, 511, 33}});
}

TEST_P(AttentionTest, EveryLengthAroundTileSizes) {
  Check({.lengths = {5, 6, 7, 11, 12, 13, 15, 16, 24, 25, 31, 32, 48, 49}});
}

TEST_P(AttentionTest, LengthsAroundOneBlockOfKeys) {
  Check({.lengths = {512, 513}, .num_heads = 1, .num_kv_heads = 1});
}

TEST_P(AttentionTest, OneLongSequence) {
  Check({.lengths = {1300}, .num_heads = 1, .num_kv_heads = 1, .head_dim = 64});
}

TEST_P(AttentionTest, EveryHeadSize) {
  for (const int32_t head_dim : {8, 16, 24, 32, 40, 64, 72, 96, 128, 256}) {
    Check({.lengths = {9, 40}, .head_dim = head_dim});
  }
}

TEST_P(AttentionTest, QueryHeadsShareKeyHeads) {
  Check({.lengths = {21, 3, 70}, .num_heads = 4, .num_kv_heads = 2});
  Check({.lengths = {21, 3, 70}, .num_heads = 8, .num_kv_heads = 1, .head_dim = 16});
  Check({.lengths = {260}, .num_heads = 16, .num_kv_heads = 8, .head_dim = 8});
  if (!GetParam().is_cuda()) {  // whose kernels take groups of up to 64, as no network has more
    Check({.lengths = {14}, .num_heads = 256, .num_kv_heads = 1, .head_dim = 8});
  }
}

TEST_P(AttentionTest, CausalQueriesSeeNoLaterKey) {
  Check({.lengths = {1, 2, 13, 64, 530}, .mask = AttentionMask::kCausal});
  Check({.lengths = {700}, .num_heads = 4, .num_kv_heads = 1, .mask = AttentionMask::kCausal});
}

TEST_P(AttentionTest, WindowsOnBothSides) {
  for (const int32_t window : {1, 4, 64}) {
    Check({.lengths = {1, 3, 100, 600}, .window = window});
  }
  Check({.lengths = {1200}, .num_heads = 1, .num_kv_heads = 1, .window = 500});
}

TEST_P(AttentionTest, CausalWindows) {
  Check({.lengths = {5, 90, 620}, .mask = AttentionMask::kCausal, .window = 16});
}

TEST_P(AttentionTest, NormalisesQueriesAndKeysPerHead) {
  Check({.lengths = {20, 5}, .num_heads = 4, .num_kv_heads = 2, .query_key_norm = true});
  Check({.lengths = {20, 5}, .head_dim = 40, .query_key_norm = true});
}

TEST_P(AttentionTest, RotatesQueriesAndKeys) {
  Check({.lengths = {20, 1, 130}, .head_dim = 64, .rope = true});
  Check({.lengths = {20}, .head_dim = 24, .rope = true});
}

TEST_P(AttentionTest, RotatesByThePositionsGiven) {
  // Not from 0, and beyond max_tokens.
  Check({.lengths = {20, 7}, .rope = true, .first_position = 3000});
}

TEST_P(AttentionTest, NormRotationAndGroupsTogetherLikeADecoder) {
  Check({.lengths = {40, 1, 9},
         .num_heads = 4,
         .num_kv_heads = 2,
         .head_dim = 128,
         .mask = AttentionMask::kCausal,
         .query_key_norm = true,
         .rope = true});
}

TEST_P(AttentionTest, AddsABiasByDistance) {
  // Lengths around the last distance, tiles and one block of keys.
  Check({.lengths = {1, 2, 15, 16, 17, 31, 33, 127, 128, 129, 130, 300, 530}, .max_distance = 128});
  Check({.lengths = {1, 16, 65, 200}, .head_dim = 64, .max_distance = 128});
  Check({.lengths = {1200}, .num_heads = 1, .num_kv_heads = 1, .max_distance = 128});
}

TEST_P(AttentionTest, AddsABiasWhoseDistancesEndBeforeAVectorDoes) {
  for (const int32_t max_distance : {0, 1, 3, 7, 16, 50}) {
    Check({.lengths = {1, 5, 40, 90}, .head_dim = 12, .max_distance = max_distance});
    Check({.lengths = {90}, .head_dim = 128, .max_distance = max_distance});
  }
}

TEST_P(AttentionTest, AddsABiasUnderMasksAndToGroupsOfHeads) {
  Check({.lengths = {3, 100, 600},
         .num_heads = 4,
         .num_kv_heads = 2,
         .head_dim = 64,
         .mask = AttentionMask::kCausal,
         .max_distance = 20});
  Check({.lengths = {3, 100, 600}, .window = 40, .max_distance = 33});
  Check({.lengths = {21}, .num_heads = 8, .num_kv_heads = 1, .head_dim = 16, .max_distance = 4});
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  Check({.lengths = {50, 700}, .score_size = 8.0F});
}

TEST_P(AttentionTest, ANanStaysInItsSequence) {
  FinishLoading();
  const TestBatch batch({10, 10, 10});
  TestMatrix qkv = RandomMatrix(dtype(), 30, 3 * 32);
  qkv.values[15 * 96 + 40] = std::numeric_limits<float>::quiet_NaN();
  qkv = Matrix(dtype(), 30, 96, qkv.values);
  TestMatrix out = PoisonedMatrix(dtype(), 30, 32);
  AttentionDesc desc;
  desc.num_heads = 1;
  desc.num_kv_heads = 1;
  desc.head_dim = 32;
  desc.scale = 1.0F;
  RunStep(batch.inputs(), [&](const StepInputs& inputs) {
    backend().Attention(desc, inputs, qkv.view(), out.view());
  });
  Fetch(&out);
  for (int64_t token = 0; token < 30; ++token) {
    EXPECT_EQ(std::isnan(out.at(token, 0)), token >= 10 && token < 20) << token;
  }
}

}  // namespace
}  // namespace bouquet::rose
