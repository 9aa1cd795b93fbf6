// The engine against the reference library: vectors that tests/parity/make_goldens.py wrote.
#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <random>

#include <gtest/gtest.h>

#include "testing/golden_cases.h"
#include "testing/random_model.h"

namespace bouquet::rose {
namespace {

using ::bouquet::testing::CosineDistance;
using ::bouquet::testing::GoldenCase;
using ::bouquet::testing::LoadEngine;
using ::bouquet::testing::RandomFamily;
using ::bouquet::testing::RandomModelOptions;
using ::bouquet::testing::ReadGoldens;
using ::bouquet::testing::RunStep;
using ::bouquet::testing::TemporaryFolder;
using ::bouquet::testing::WriteRandomModel;

struct TinySet {
  const char* name;
  RandomModelOptions options;
};

void PrintTo(const TinySet& set, std::ostream* out) { *out << set.name; }

// The same sets as in make_goldens.py.
std::vector<TinySet> TinySets() {
  return {
      {"tiny_bert", {}},
      {"tiny_bert_every_pooling",
       {.pooling_modes = {"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean",
                          "lasttoken"},
        .normalize = false}},
      {"tiny_bert_dense",
       {.pooling_modes = {"max", "mean"},
        .dense_out_features = 16,
        .dense_activation = "torch.nn.modules.activation.GELU",
        .dense_residual = true}},
      {"tiny_bert_dense_default_activation",
       {.dense_out_features = 72,
        .dense_activation = "",
        .dense_bias = false,
        .dense_residual = true,
        .normalize = false}},
      {"tiny_xlm_roberta", {.family = RandomFamily::kXlmRoberta}},
      {"tiny_xlm_roberta_mean",
       {.family = RandomFamily::kXlmRoberta, .pooling_modes = {"mean"}, .normalize = false}},
      {"tiny_roberta", {.family = RandomFamily::kRoberta, .seed = 3}},
      {"tiny_mpnet", {.family = RandomFamily::kMpnet}},
      {"tiny_distilbert", {.family = RandomFamily::kDistilBert}},
      {"tiny_qwen3_causal", {.family = RandomFamily::kQwen3Causal}},
      {"tiny_qwen3_bidirectional", {.family = RandomFamily::kQwen3Bidirectional}},
      {"tiny_qwen3_attention_bias",
       {.family = RandomFamily::kQwen3Causal, .seed = 7, .attention_bias = true}},
  };
}

std::vector<const GoldenCase*> Pointers(const std::vector<GoldenCase>& cases) {
  std::vector<const GoldenCase*> pointers;
  for (const GoldenCase& golden : cases) {
    pointers.push_back(&golden);
  }
  return pointers;
}

// `count` cases, the short ones more often, in an order that the seed decides. Long neighbours of
// short sequences are what goes wrong in padded batches.
std::vector<const GoldenCase*> Composition(const std::vector<GoldenCase>& cases, size_t count,
                                           int32_t max_tokens) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::vector<const GoldenCase*> chosen;
  size_t tokens = 0;
  while (chosen.size() < count) {
    const GoldenCase& golden = cases[random() % cases.size()];
    const size_t room = static_cast<size_t>(max_tokens) - tokens - 2 * (count - chosen.size());
    if (golden.ids.size() <= std::min<size_t>(room, chosen.size() % 8 == 0 ? 640 : 40)) {
      chosen.push_back(&golden);
      tokens += golden.ids.size();
    }
  }
  return chosen;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    size = std::max(size, std::abs(double{b[i]}));
  }
  return difference / size;
}

class TinyGoldenTest : public ::testing::TestWithParam<TinySet> {
 protected:
  static constexpr int32_t kMaxTokens = 8192;

  std::unique_ptr<Engine> Load(const std::string& dtype) {
    WriteRandomModel(folder_.path() / "model", GetParam().options);
    return LoadEngine(folder_.path() / "model", {.dtype = dtype, .max_step_tokens = kMaxTokens});
  }
  TemporaryFolder folder_;
};

// Unnormalised where the pipeline leaves them so: lengths count too.
constexpr model::OutputSpec kAsThePipelineLeavesIt = {.normalize = false};

TEST_P(TinyGoldenTest, EqualsTheReferenceAloneAndBatched) {
  const std::vector<GoldenCase> cases = ReadGoldens(GetParam().name);
  const std::unique_ptr<Engine> engine = Load("float32");
  ASSERT_EQ(static_cast<size_t>(engine->info().limits.width), cases[0].vector.size());
  const auto together = RunStep(*engine, Pointers(cases), kAsThePipelineLeavesIt);
  ASSERT_EQ(together.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto alone = RunStep(*engine, {&cases[i]}, kAsThePipelineLeavesIt);
    EXPECT_LE(CosineDistance(alone.at(0), cases[i].vector), 1e-5) << "case " << i;
    EXPECT_LE(LargestDifference(alone.at(0), cases[i].vector), 1e-5) << "case " << i;
    EXPECT_LE(CosineDistance(together[i], cases[i].vector), 1e-5) << "case " << i;
    EXPECT_LE(CosineDistance(together[i], alone.at(0)), 1e-6) << "case " << i;
  }
}

TEST_P(TinyGoldenTest, EqualsTheReferenceInEveryBatchComposition) {
  const std::vector<GoldenCase> cases = ReadGoldens(GetParam().name);
  const std::unique_ptr<Engine> engine = Load("float32");
  for (const size_t count : {2, 17, 64}) {
    const std::vector<const GoldenCase*> chosen = Composition(cases, count, kMaxTokens);
    const auto rows = RunStep(*engine, chosen, kAsThePipelineLeavesIt);
    ASSERT_EQ(rows.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_LE(CosineDistance(rows[i], chosen[i]->vector), 1e-5) << count << ", row " << i;
      EXPECT_LE(LargestDifference(rows[i], chosen[i]->vector), 1e-5) << count << ", row " << i;
    }
  }
}

TEST_P(TinyGoldenTest, StaysCloseInBfloat16) {
  const std::vector<GoldenCase> cases = ReadGoldens(GetParam().name);
  const std::unique_ptr<Engine> engine = Load("bfloat16");
  const auto rows = RunStep(*engine, Pointers(cases), kAsThePipelineLeavesIt);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_LE(CosineDistance(rows.at(i), cases[i].vector), 1e-3) << "case " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, TinyGoldenTest, ::testing::ValuesIn(TinySets()),
                         [](const auto& set) { return std::string(set.param.name); });

class MiniLmGoldenTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Engine> Load(const std::string& dtype, int32_t max_step_tokens) {
    return LoadEngine(::bouquet::testing::DemoModelPath(),
                      {.dtype = dtype, .max_step_tokens = max_step_tokens});
  }
};

TEST_F(MiniLmGoldenTest, EqualsTheReferenceAlone) {
  REQUIRE_DEMO_MODEL();
  const std::vector<GoldenCase> cases = ReadGoldens("minilm");
  const std::unique_ptr<Engine> engine = Load("float32", 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto rows = RunStep(*engine, {&cases[i]}, {});
    EXPECT_LE(CosineDistance(rows.at(0), cases[i].vector), 1e-5) << "case " << i;
  }
}

TEST_F(MiniLmGoldenTest, EqualsTheReferenceInEveryBatchComposition) {
  REQUIRE_DEMO_MODEL();
  const std::vector<GoldenCase> cases = ReadGoldens("minilm");
  constexpr int32_t kMaxTokens = 3072;
  const std::unique_ptr<Engine> engine = Load("float32", kMaxTokens);
  std::map<const GoldenCase*, std::vector<float>> alone;
  for (const GoldenCase& golden : cases) {
    alone[&golden] = RunStep(*engine, {&golden}, {}).at(0);
  }
  for (const size_t count : {2, 16, 17, 256}) {
    const std::vector<const GoldenCase*> chosen = Composition(cases, count, kMaxTokens);
    const auto rows = RunStep(*engine, chosen, {});
    ASSERT_EQ(rows.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_LE(CosineDistance(rows[i], chosen[i]->vector), 1e-5) << count << ", row " << i;
      EXPECT_LE(CosineDistance(rows[i], alone[chosen[i]]), 1e-6) << count << ", row " << i;
    }
  }
}

TEST_F(MiniLmGoldenTest, StaysCloseInBfloat16) {
  REQUIRE_DEMO_MODEL();
  const std::vector<GoldenCase> cases = ReadGoldens("minilm");
  const std::unique_ptr<Engine> engine = Load("bfloat16", 4096);
  const auto rows = RunStep(*engine, Pointers(cases), {});
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_LE(CosineDistance(rows.at(i), cases[i].vector), 1e-3) << "case " << i;
  }
}

TEST_F(MiniLmGoldenTest, CutsRowsAndThenNormalises) {
  REQUIRE_DEMO_MODEL();
  const std::vector<GoldenCase> cases = ReadGoldens("minilm");
  const std::unique_ptr<Engine> engine = Load("float32", 0);
  const auto rows = RunStep(*engine, {&cases[5]}, {.dimensions = 64, .normalize = true});
  double square = 0;
  double dot = 0;
  double reference_square = 0;
  for (size_t i = 0; i < 64; ++i) {
    square += double{rows.at(0)[i]} * rows[0][i];
    dot += double{rows[0][i]} * cases[5].vector[i];
    reference_square += double{cases[5].vector[i]} * cases[5].vector[i];
  }
  EXPECT_NEAR(square, 1, 1e-5);
  EXPECT_NEAR(dot / std::sqrt(reference_square), 1, 1e-5);
}

}  // namespace
}  // namespace bouquet::rose
