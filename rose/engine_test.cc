#include "rose/engine.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
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
using ::bouquet::testing::RandomTensor;
using ::bouquet::testing::RandomTensors;
using ::bouquet::testing::ReadFile;
using ::bouquet::testing::RunStep;
using ::bouquet::testing::TemporaryFolder;
using ::bouquet::testing::WriteFile;
using ::bouquet::testing::WriteRandomModel;
using ::bouquet::testing::WriteSafetensors;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using TensorMap = std::map<std::string, RandomTensor>;

class EngineTest : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "tiny"; }
  std::filesystem::path weights_path() const { return path() / "model.safetensors"; }

  std::unique_ptr<Engine> LoadModel(const RandomModelOptions& model) {
    std::filesystem::remove_all(path());
    WriteRandomModel(path(), model);
    return LoadEngine(path(), {.max_step_tokens = 256});
  }

  /// What loading says when the tiny BERT's tensors were changed.
  Status ErrorAfter(const std::function<void(TensorMap& tensors)>& change) {
    WriteRandomModel(path(), {});
    TensorMap tensors = RandomTensors({});
    change(tensors);
    WriteSafetensors(weights_path(), tensors, "F32");
    return TryLoad({});
  }

  Status TryLoad(const EngineOptions& options) {
    const Result<model::ModelFolder> folder = model::ModelFolder::Open(path());
    EXPECT_TRUE(folder.ok()) << folder.status().ToString();
    return Engine::Load(*folder, options).status();
  }

  std::vector<float> Row(Engine& engine, const std::vector<int32_t>& ids,
                         const model::OutputSpec& output = {}) {
    const GoldenCase one = {.ids = ids};
    return RunStep(engine, {&one}, output).at(0);
  }

  TemporaryFolder folder_;
};

TEST_F(EngineTest, DescribesItself) {
  const std::unique_ptr<Engine> engine = LoadModel({});
  const EngineInfo& info = engine->info();
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.dtype, "float32");
  EXPECT_THAT(info.numerics_fingerprint, HasSubstr("float32"));
  EXPECT_EQ(info.limits.width, 72);
  EXPECT_EQ(info.limits.vocabulary_rows, 300);
  EXPECT_EQ(info.limits.max_tokens, 256);
  EXPECT_EQ(info.steps_under_way, 1);
  int64_t elements = 0;
  for (const auto& [name, tensor] : RandomTensors({})) {
    elements += static_cast<int64_t>(tensor.values.size());
  }
  EXPECT_EQ(info.weight_bytes, 4 * elements);
}

TEST_F(EngineTest, TakesAStepOfTheLongestInputByDefault) {
  WriteRandomModel(path(), {});
  EXPECT_EQ(LoadEngine(path(), {})->info().limits.max_tokens, 1024);
}

TEST_F(EngineTest, FilesOfEveryDtypePrefixAndNumberOfShardsGiveTheSameVectors) {
  const std::map<RandomFamily, std::string> prefixes = {{RandomFamily::kBert, "bert."},
                                                        {RandomFamily::kXlmRoberta, "roberta."},
                                                        {RandomFamily::kMpnet, "mpnet."},
                                                        {RandomFamily::kDistilBert, "distilbert."},
                                                        {RandomFamily::kQwen3Causal, "model."}};
  for (const auto& [family, prefix] : prefixes) {
    const std::vector<float> expected = Row(*LoadModel({.family = family}), {7, 8, 9});
    const RandomModelOptions variants[] = {
        {.family = family, .dtype = "F16"},
        {.family = family, .dtype = "BF16"},
        {.family = family, .shards = 3},
        {.family = family, .prefix = prefix},
        {.family = family, .prefix = prefix, .shards = 2, .harmless_extras = true},
    };
    for (const RandomModelOptions& variant : variants) {
      EXPECT_EQ(Row(*LoadModel(variant), {7, 8, 9}), expected)
          << variant.dtype << " " << variant.prefix << " " << variant.shards;
    }
  }
}

TEST_F(EngineTest, NamesAMissingTensor) {
  const Status error = ErrorAfter(
      [](TensorMap& tensors) { tensors.erase("encoder.layer.1.attention.self.key.bias"); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("encoder.layer.1.attention.self.key.bias"),
                                     HasSubstr("[72]"), HasSubstr(weights_path().string())));
}

TEST_F(EngineTest, NamesTheWordEmbeddingWhenNoPrefixFits) {
  const Status error = ErrorAfter([](TensorMap& tensors) {
    tensors = {{"other.weight", {{1, 1}, {0}}}};
  });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("embeddings.word_embeddings.weight"));
}

TEST_F(EngineTest, NamesATensorOfAnotherShapeWithBothShapes) {
  const Status error = ErrorAfter([](TensorMap& tensors) {
    tensors["encoder.layer.0.output.dense.weight"].shape = {150, 72};
  });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      error.message(),
      AllOf(HasSubstr("encoder.layer.0.output.dense.weight"), HasSubstr(weights_path().string()),
            HasSubstr("expected [72, 150]"), HasSubstr("found [150, 72]")));
}

TEST_F(EngineTest, NamesAnUnexpectedTensor) {
  const Status error = ErrorAfter([](TensorMap& tensors) {
    tensors["encoder.layer.2.output.dense.bias"] = {{72}, std::vector<float>(72)};
  });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("encoder.layer.2.output.dense.bias"),
                                     HasSubstr(weights_path().string())));
}

TEST_F(EngineTest, ADenseModuleNamesItsTensorsToo) {
  WriteRandomModel(path(), {.dense_out_features = 16});
  const std::filesystem::path dense = path() / "2_Dense/model.safetensors";
  WriteSafetensors(dense, {{"linear.weight", {{16, 71}, std::vector<float>(16 * 71)}}}, "F32");
  EXPECT_THAT(TryLoad({}).message(),
              AllOf(HasSubstr("expected [16, 72], found [16, 71]"), HasSubstr(dense.string())));
  WriteSafetensors(dense, {{"linear.weight", {{16, 72}, std::vector<float>(16 * 72)}}}, "F32");
  EXPECT_THAT(TryLoad({}).message(), HasSubstr("tensor is missing: linear.bias"));
}

TEST_F(EngineTest, RefusesDamagedWeights) {
  WriteRandomModel(path(), {});
  const std::string whole = ReadFile(weights_path());
  std::string long_header = whole;
  long_header[4] = 1;
  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), whole.substr(0, 4),
                                     whole + "x", long_header, std::string(100, '\xff')}) {
    WriteFile(weights_path(), damaged);
    EXPECT_EQ(TryLoad({}).code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(TryLoad({}).message(), HasSubstr(weights_path().string()));
  }
}

TEST_F(EngineTest, RefusesOptionsThatDoNotExist) {
  WriteRandomModel(path(), {});
  EXPECT_THAT(TryLoad({.dtype = "int4"}).message(), HasSubstr("not int4"));
  EXPECT_FALSE(TryLoad({.device = "tpu"}).ok());
  EXPECT_FALSE(TryLoad({.threads = -1}).ok());
  EXPECT_THAT(TryLoad({.max_step_tokens = -5}).message(), HasSubstr("not -5"));
  EXPECT_THAT(TryLoad({.max_step_sequences = 0}).message(), HasSubstr("not 0"));
}

TEST_F(EngineTest, ABatchThatBreaksALimitIsRefusedAndTheNextOneServed) {
  const std::unique_ptr<Engine> engine = LoadModel({});
  const std::vector<float> expected = Row(*engine, {5, 6});
  Batch batch;
  batch.Add({300}, {}, 0, {});
  LazyTensor refused = engine->Step(batch);
  EXPECT_TRUE(refused.IsReady());
  EXPECT_EQ(refused.Wait().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Row(*engine, {5, 6}), expected);
}

TEST_F(EngineTest, RobertaReadsPositionsFromTheRowBehindThePadding) {
  const RandomModelOptions model = {.family = RandomFamily::kXlmRoberta};
  constexpr size_t kHidden = 72;
  const std::vector<float> expected = Row(*LoadModel(model), {5});
  for (const size_t row : {0, 1, 2, 3}) {
    TensorMap tensors = RandomTensors(model);
    std::vector<float>& positions = tensors["embeddings.position_embeddings.weight"].values;
    std::fill_n(positions.begin() + static_cast<int64_t>(row * kHidden), kHidden, 0.5F);
    WriteSafetensors(weights_path(), tensors, "F32");
    const std::vector<float> changed = Row(*LoadEngine(path(), {}), {5});
    EXPECT_EQ(changed == expected, row != 2) << "row " << row;
  }
}

TEST_F(EngineTest, RobertaTakesItsLongestInputAndNotOneTokenMore) {
  const RandomModelOptions model = {.family = RandomFamily::kXlmRoberta};
  WriteRandomModel(path(), model);
  const std::unique_ptr<Engine> engine = LoadEngine(path(), {});
  EXPECT_EQ(engine->info().limits.max_positions, 638);
  EXPECT_EQ(Row(*engine, std::vector<int32_t>(638, 7)).size(), 72U);
  Batch batch;
  batch.Add({5, 6}, {}, 0, {});
  batch.Add(std::vector<int32_t>(639, 7), {}, 0, {});
  const Status error = engine->Step(batch).Wait().status();
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error.message(), "position must be 0..637, not 638: sequence 1, token 638");
}

TEST_F(EngineTest, TheBatchMayChangeAsSoonAsStepReturns) {
  const std::unique_ptr<Engine> engine = LoadModel({});
  const std::vector<float> expected = Row(*engine, {5, 6, 7});
  Batch batch;
  batch.Add({5, 6, 7}, {}, 0, {});
  LazyTensor step = engine->Step(batch);
  batch.Clear();
  batch.Add({1, 1, 1}, {}, 0, {});
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok());
  const auto* row = reinterpret_cast<const float*>(result->blocks[0].data.data());
  EXPECT_EQ(std::vector<float>(row, row + 72), expected);
}

TEST_F(EngineTest, EachRowHasItsOwnDimensionsAndNorm) {
  const std::unique_ptr<Engine> engine = LoadModel({.normalize = false});
  const std::vector<float> full = Row(*engine, {5, 6, 7}, {.normalize = false});
  Batch batch;
  batch.Add({5, 6, 7}, {}, 0, {.dimensions = 10, .normalize = true});
  batch.Add({5, 6, 7}, {}, 0, {.dimensions = 0, .normalize = false});
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->blocks.size(), 1U);
  const model::RowBlock& block = result->blocks[0];
  EXPECT_EQ(block.width, 72U);
  EXPECT_THAT(block.offsets, ElementsAre(0U, 1U, 2U));
  EXPECT_EQ(block.data.size(), 2 * 72 * sizeof(float));
  const auto* rows = reinterpret_cast<const float*>(block.data.data());
  double norm = 0;
  for (size_t i = 0; i < 10; ++i) {
    norm += double{full[i]} * full[i];
  }
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(rows[i], full[i] / std::sqrt(norm), 1e-5);
  }
  EXPECT_NEAR(rows[72], full[0], 1e-5);
}

/// Rows of float32 of sequence i.
std::vector<std::vector<float>> RowsOf(const StepResult& result, size_t sequence) {
  const model::RowBlock& block = result.blocks[0];
  std::vector<std::vector<float>> rows;
  for (uint32_t row = block.offsets[sequence]; row < block.offsets[sequence + 1]; ++row) {
    const auto* data = reinterpret_cast<const float*>(block.data.data() + row * block.stride());
    rows.emplace_back(data, data + block.width);
  }
  return rows;
}

TEST_F(EngineTest, EachRowHasItsOwnFormat) {
  const std::unique_ptr<Engine> engine = LoadModel({.normalize = false});
  const std::vector<float> full = Row(*engine, {5, 6, 7}, {.normalize = false});
  Batch batch;
  using model::RowDtype;
  const std::vector<int32_t> ids = {5, 6, 7};
  batch.Add(ids, {}, 0, {.dtype = RowDtype::kTanhInt8, .normalize = false});
  batch.Add(ids, {}, 0, {.dtype = RowDtype::kFloat32, .dimensions = 9, .normalize = false});
  batch.Add(ids, {}, 0, {.dtype = RowDtype::kSignBitsMsbFirst, .dimensions = 16});
  batch.Add(ids, {}, 0, {.dtype = RowDtype::kSignBitsLsbFirst});
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const model::RowBlock& block = result->blocks[0];
  EXPECT_EQ(block.stride(), 72 * sizeof(float));
  const auto row = [&block](size_t index) { return block.data.data() + index * block.stride(); };
  for (size_t i = 0; i < 72; ++i) {
    EXPECT_EQ(std::to_integer<int8_t>(row(0)[i]),
              std::nearbyint(127.0 * std::tanh(double{full[i]})));
    EXPECT_EQ(std::to_integer<int>(row(3)[i / 8]) >> i % 8 & 1, full[i] >= 0 ? 1 : 0);
    EXPECT_EQ(RowsOf(*result, 1)[0][i], i < 9 ? full[i] : 0);
  }
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(std::to_integer<int>(row(2)[i / 8]) >> (7 - i % 8) & 1, full[i] >= 0 ? 1 : 0);
  }
  EXPECT_EQ(std::to_integer<int>(row(2)[2]), 0);
}

// The row of a span of one token is its hidden state: the golden of a longer one is the plain mean.
TEST_F(EngineTest, ASpanIsTheMeanOfItsTokensInTheirDocument) {
  const std::vector<int32_t> document = {5, 6, 7, 20, 30, 31, 32, 33, 20, 40};
  const RandomModelOptions model = {
      .family = RandomFamily::kQwen3Bidirectional, .pooling_modes = {"mean"}, .normalize = false};
  const std::unique_ptr<Engine> engine = LoadModel(model);
  std::vector<std::vector<float>> hidden;
  for (int32_t token = 0; token < 10; ++token) {
    Batch batch;
    const TokenSpan one[] = {{token, token + 1}};
    batch.Add(document, {}, 0, {.normalize = false}, one);
    LazyTensor step = engine->Step(batch);
    const Result<StepResult> result = step.Wait();
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    hidden.push_back(RowsOf(*result, 0).at(0));
  }
  const size_t width = hidden[0].size();

  Batch batch;
  const TokenSpan spans[] = {{0, 3}, {4, 8}, {9, 10}};  // token 20 separates them
  const TokenSpan whole[] = {{0, 10}};
  batch.Add({8, 9}, {}, 1, {.normalize = false});
  batch.Add(document, {}, 0, {.normalize = false}, spans);
  batch.Add(document, {}, 0, {.normalize = true}, spans);
  batch.Add(document, {}, 0, {.normalize = false}, whole);
  batch.Add(document, {}, 0, {.normalize = false});
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_THAT(result->blocks[0].offsets, ElementsAre(0U, 1U, 4U, 7U, 8U, 9U));
  EXPECT_EQ(result->statuses.size(), 5U);

  for (size_t span = 0; span < 3; ++span) {
    std::vector<double> mean(width);
    double squares = 0;
    for (size_t i = 0; i < width; ++i) {
      for (int32_t token = spans[span].begin; token < spans[span].end; ++token) {
        mean[i] += hidden[static_cast<size_t>(token)][i];
      }
      mean[i] /= spans[span].end - spans[span].begin;
      squares += mean[i] * mean[i];
    }
    for (size_t i = 0; i < width; ++i) {
      EXPECT_NEAR(RowsOf(*result, 1).at(span)[i], mean[i], 1e-5);
      EXPECT_NEAR(RowsOf(*result, 2).at(span)[i], mean[i] / std::sqrt(squares), 1e-5);
    }
  }
  EXPECT_EQ(RowsOf(*result, 3), RowsOf(*result, 4));  // one span of all tokens is the whole
  // A document of one chunk is that chunk alone, and others beside it do not change it.
  EXPECT_EQ(RowsOf(*result, 4).at(0), Row(*engine, document, {.normalize = false}));
}

TEST_F(EngineTest, SpansLeaveTheirSequenceAndTheirNeighboursAsTheyAre) {
  const std::unique_ptr<Engine> engine = LoadModel({.dense_out_features = 16});
  const std::vector<float> alone = Row(*engine, {8, 9, 10});
  Batch batch;
  std::vector<TokenSpan> spans;
  for (int32_t token = 0; token < 200; token += 2) {
    spans.push_back({token, token + 1});
  }
  batch.Add(std::vector<int32_t>(200, 7), {}, 0, {}, spans);
  batch.Add({8, 9, 10}, {}, 0, {});
  for (int round = 0; round < 2; ++round) {  // the slot is used again
    LazyTensor step = engine->Step(batch);
    const Result<StepResult> result = step.Wait();
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(RowsOf(*result, 0).size(), 100U);
    EXPECT_THAT(RowsOf(*result, 1), ElementsAre(alone));
    EXPECT_EQ(Row(*engine, {8, 9, 10}), alone);
  }
}

TEST_F(EngineTest, ASequenceWithANonFiniteSpanIsNotFinite) {
  WriteRandomModel(path(), {.pooling_modes = {"mean"}});
  TensorMap tensors = RandomTensors({.pooling_modes = {"mean"}});
  tensors["embeddings.word_embeddings.weight"].values[42 * 72 + 3] =
      std::numeric_limits<float>::quiet_NaN();
  WriteSafetensors(weights_path(), tensors, "F32");
  const std::unique_ptr<Engine> engine = LoadEngine(path(), {});
  Batch batch;
  const TokenSpan spans[] = {{0, 1}, {1, 2}, {2, 3}};
  batch.Add({5, 6, 7}, {}, 0, {}, spans);
  batch.Add({5, 6, 42}, {}, 0, {}, spans);
  batch.Add({5}, {}, 0, {});
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_THAT(result->statuses, ElementsAre(RowStatus::kOk, RowStatus::kNotFinite, RowStatus::kOk));
}

TEST_F(EngineTest, SpansNeedAModelThatPoolsByTheMeanAlone) {
  const TokenSpan spans[] = {{0, 1}};
  for (const std::vector<std::string>& modes :
       std::vector<std::vector<std::string>>{{"mean"}, {"cls"}, {"mean", "max"}}) {
    const std::unique_ptr<Engine> engine = LoadModel({.pooling_modes = modes});
    Batch batch;
    batch.Add({5, 6}, {}, 0, {}, spans);
    const Status status = engine->Step(batch).Wait().status();
    EXPECT_EQ(status.ok(), modes == std::vector<std::string>{"mean"});
    if (!status.ok()) {
      EXPECT_THAT(status.message(), HasSubstr("mean alone"));
      EXPECT_EQ(engine->info().limits.max_rows, engine->info().limits.max_sequences);
    }
  }
}

TEST_F(EngineTest, ADocumentAsLongAsAStepMayHaveSpansOfASentence) {
  WriteRandomModel(path(), {.pooling_modes = {"mean"}});
  const std::unique_ptr<Engine> engine =
      LoadEngine(path(), {.max_step_tokens = 320, .max_step_sequences = 2});
  EXPECT_EQ(engine->info().limits.max_rows, 20);
  Batch batch;
  std::vector<TokenSpan> spans;
  for (int32_t span = 0; span < 20; ++span) {
    spans.push_back({16 * span, 16 * (span + 1)});
  }
  batch.Add(std::vector<int32_t>(320, 7), {}, 0, {}, spans);
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(RowsOf(*result, 0).size(), 20U);
}

TEST_F(EngineTest, ANonFiniteWeightFailsOnlyTheSequencesThatMeetIt) {
  WriteRandomModel(path(), {});
  TensorMap tensors = RandomTensors({});
  tensors["embeddings.word_embeddings.weight"].values[42 * 72 + 3] =
      std::numeric_limits<float>::quiet_NaN();
  tensors["embeddings.word_embeddings.weight"].values[43 * 72] =
      std::numeric_limits<float>::infinity();
  WriteSafetensors(weights_path(), tensors, "F32");
  const std::unique_ptr<Engine> engine = LoadEngine(path(), {});
  Batch batch;
  batch.Add({5, 6}, {}, 0, {});
  batch.Add({5, 42, 6}, {}, 0, {});
  batch.Add({43}, {}, 0, {});
  batch.Add({5, 6}, {}, 0, {});
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->statuses, ElementsAre(RowStatus::kOk, RowStatus::kNotFinite,
                                            RowStatus::kNotFinite, RowStatus::kOk));
  const auto* rows = reinterpret_cast<const float*>(result->blocks[0].data.data());
  for (size_t i = 0; i < 72; ++i) {
    EXPECT_TRUE(std::isfinite(rows[i]));
    EXPECT_FLOAT_EQ(rows[i], rows[3 * 72 + i]);
  }
}

TEST_F(EngineTest, ACausalModelIgnoresLaterTokens) {
  const std::unique_ptr<Engine> causal =
      LoadModel({.family = RandomFamily::kQwen3Causal, .pooling_modes = {"cls"}});
  EXPECT_LE(CosineDistance(Row(*causal, {5, 6, 7}), Row(*causal, {5, 90, 91, 92})), 1e-6);
  const std::unique_ptr<Engine> bidirectional =
      LoadModel({.family = RandomFamily::kQwen3Bidirectional, .pooling_modes = {"cls"}});
  EXPECT_GT(CosineDistance(Row(*bidirectional, {5, 6, 7}), Row(*bidirectional, {5, 90, 91, 92})),
            1e-4);
}

TEST_F(EngineTest, ServesItsLargestStep) {
  const std::unique_ptr<Engine> engine = LoadModel({.family = RandomFamily::kQwen3Causal});
  Batch batch;
  for (int i = 0; i < 256; ++i) {
    batch.Add({i}, {}, 0, {});
  }
  LazyTensor step = engine->Step(batch);
  const Result<StepResult> result = step.Wait();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->statuses.size(), 256U);
  EXPECT_EQ(Row(*engine, std::vector<int32_t>(256, 9)).size(), 40U);
}

}  // namespace
}  // namespace bouquet::rose
