#include "model/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/random_model.h"
#include "testing/test_data.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;
using ::bouquet::testing::TemporaryFolder;
using ::bouquet::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() {
    traits_.hidden_size = 8;
    Write("1_Pooling/config.json", R"({"word_embedding_dimension": 8})");
  }

  void Write(const std::string& name, const std::string& content) {
    fs::create_directories((folder_.path() / name).parent_path());
    WriteFile(folder_.path() / name, content);
  }

  /// Each item is "path:Class" of sentence_transformers.models, or "path:full.name".
  void WriteModules(const std::vector<std::pair<std::string, std::string>>& items) {
    std::string text = "[";
    for (const auto& [path, type] : items) {
      const std::string full =
          type.find('.') == std::string::npos ? "sentence_transformers.models." + type : type;
      text += text.size() > 1 ? ", " : "";
      text += R"({"path": ")" + path + R"(", "type": ")" + full + R"("})";
    }
    Write("modules.json", text + "]");
  }

  Result<PoolingModule> ReadPooling(const std::string& config) {
    Write("1_Pooling/config.json", config);
    WriteModules({{"", "Transformer"}, {"1_Pooling", "Pooling"}});
    ASSIGN_OR_RETURN(const Pipeline pipeline, ParsePipeline(folder_.path(), traits_));
    return std::get<PoolingModule>(pipeline.modules.front());
  }

  Result<DenseModule> ReadDense(const std::string& config) {
    Write("2_Dense/config.json", config);
    WriteModules({{"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2_Dense", "Dense"}});
    ASSIGN_OR_RETURN(const Pipeline pipeline, ParsePipeline(folder_.path(), traits_));
    return std::get<DenseModule>(pipeline.modules.back());
  }

  Status Error() { return ParsePipeline(folder_.path(), traits_).status(); }

  TemporaryFolder folder_;
  Traits traits_;
};

TEST_F(PipelineTest, WithoutModulesFilePoolsByMean) {
  const Result<Pipeline> pipeline = ParsePipeline(folder_.path(), traits_);
  ASSERT_TRUE(pipeline.ok());
  EXPECT_THAT(std::get<PoolingModule>(pipeline->modules.at(0)).modes,
              ElementsAre(PoolingMode::kMean));
  EXPECT_EQ(pipeline->width, 8);
  EXPECT_FALSE(pipeline->ends_normalized);
  EXPECT_EQ(pipeline->transformer_folder, folder_.path());
}

TEST_F(PipelineTest, WithoutModulesFileACausalLanguageModelPoolsItsLastToken) {
  traits_.class_name = "Qwen3ForCausalLM";
  const Result<Pipeline> pipeline = ParsePipeline(folder_.path(), traits_);
  ASSERT_TRUE(pipeline.ok());
  EXPECT_THAT(std::get<PoolingModule>(pipeline->modules.at(0)).modes,
              ElementsAre(PoolingMode::kLastToken));
}

TEST_F(PipelineTest, RunsModulesInTheOrderOfTheFileWithOldAndNewNames) {
  Write("d/config.json", R"({"in_features": 8, "out_features": 4})");
  WriteModules({{"0_T", "sentence_transformers.base.modules.transformer.Transformer"},
                {"1_Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"},
                {"d", "sentence_transformers.base.modules.dense.Dense"},
                {"n", "sentence_transformers.base.modules.normalize.Normalize"}});
  const Result<Pipeline> pipeline = ParsePipeline(folder_.path(), traits_);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().ToString();
  ASSERT_EQ(pipeline->modules.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<PoolingModule>(pipeline->modules[0]));
  EXPECT_TRUE(std::holds_alternative<DenseModule>(pipeline->modules[1]));
  EXPECT_EQ(std::get<DenseModule>(pipeline->modules[1]).folder, folder_.path() / "d");
  EXPECT_EQ(pipeline->width, 4);
  EXPECT_TRUE(pipeline->ends_normalized);
  EXPECT_EQ(pipeline->transformer_folder, folder_.path() / "0_T");
  EXPECT_EQ(FindTransformerFolder(folder_.path()).value(), folder_.path() / "0_T");
}

TEST_F(PipelineTest, ReadsEveryPoolingModeInBothStyles) {
  const std::pair<const char*, PoolingMode> modes[] = {
      {"cls", PoolingMode::kCls},
      {"max", PoolingMode::kMax},
      {"mean", PoolingMode::kMean},
      {"mean_sqrt_len_tokens", PoolingMode::kMeanSqrtLength},
      {"weightedmean", PoolingMode::kWeightedMean},
      {"lasttoken", PoolingMode::kLastToken}};
  for (const auto& [name, mode] : modes) {
    const Result<PoolingModule> pooling = ReadPooling(
        R"({"embedding_dimension": 8, "pooling_mode": ")" + std::string(name) + R"("})");
    ASSERT_TRUE(pooling.ok()) << pooling.status().ToString();
    EXPECT_THAT(pooling->modes, ElementsAre(mode));
    EXPECT_TRUE(pooling->include_prompt);
  }
  const Result<PoolingModule> flags = ReadPooling(R"({"word_embedding_dimension": 8,
      "pooling_mode_lasttoken": true, "pooling_mode_weightedmean_tokens": true,
      "pooling_mode_mean_sqrt_len_tokens": true, "pooling_mode_mean_tokens": true,
      "pooling_mode_max_tokens": true, "pooling_mode_cls_token": true})");
  ASSERT_TRUE(flags.ok());
  EXPECT_THAT(flags->modes, ElementsAre(PoolingMode::kCls, PoolingMode::kMax, PoolingMode::kMean,
                                        PoolingMode::kMeanSqrtLength, PoolingMode::kWeightedMean,
                                        PoolingMode::kLastToken));
}

TEST_F(PipelineTest, ListOfModesKeepsItsOrderAndWinsOverFlags) {
  const Result<PoolingModule> pooling = ReadPooling(
      R"({"embedding_dimension": 8, "pooling_mode": ["max", "cls"],
          "pooling_mode_mean_tokens": true})");
  ASSERT_TRUE(pooling.ok());
  EXPECT_THAT(pooling->modes, ElementsAre(PoolingMode::kMax, PoolingMode::kCls));
  EXPECT_EQ(ParsePipeline(folder_.path(), traits_)->width, 16);
}

TEST_F(PipelineTest, RefusesBadPooling) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"embedding_dimension": 9})", "\"embedding_dimension\" is 9, expected 8"},
      {R"({})", "\"word_embedding_dimension\" is missing"},
      {R"({"embedding_dimension": 8, "pooling_mode": "attention"})", "not attention"},
      {R"({"embedding_dimension": 8, "pooling_mode": []})", "a name or a list of names"},
      {R"({"embedding_dimension": 8, "pooling_mode": [1]})", "must hold names, not number"},
      {R"({"embedding_dimension": 8, "pooling_mode": "cls", "include_prompt": false})",
       "include_prompt"}};
  for (const auto& [config, message] : cases) {
    const Result<PoolingModule> pooling = ReadPooling(config);
    ASSERT_FALSE(pooling.ok()) << config;
    EXPECT_THAT(pooling.status().message(), HasSubstr(message));
    EXPECT_THAT(pooling.status().message(), HasSubstr("1_Pooling/config.json"));
  }
}

TEST_F(PipelineTest, MissingActivationOfDenseIsTanh) {
  const Result<DenseModule> dense = ReadDense(R"({"in_features": 8, "out_features": 4})");
  ASSERT_TRUE(dense.ok());
  EXPECT_EQ(dense->activation, "tanh");
  EXPECT_TRUE(dense->bias);
  EXPECT_FALSE(dense->use_residual);
}

TEST_F(PipelineTest, ReadsActivationsOfDenseByClassName) {
  const std::pair<const char*, const char*> names[] = {
      {"torch.nn.modules.linear.Identity", "identity"},
      {"torch.nn.modules.activation.Tanh", "tanh"},
      {"torch.nn.modules.activation.ReLU", "relu"},
      {"torch.nn.modules.activation.GELU", "gelu"},
      {"torch.nn.Sigmoid", "sigmoid"},
      {"torch.nn.modules.activation.SiLU", "silu"}};
  for (const auto& [name, expected] : names) {
    const Result<DenseModule> dense = ReadDense(
        R"({"in_features": 8, "out_features": 4, "bias": false, "activation_function": ")" +
        std::string(name) + R"("})");
    ASSERT_TRUE(dense.ok()) << dense.status().ToString();
    EXPECT_EQ(dense->activation, expected);
    EXPECT_FALSE(dense->bias);
  }
}

TEST_F(PipelineTest, RefusesBadDense) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"in_features": 7, "out_features": 4})", "\"in_features\" is 7, expected 8"},
      {R"({"in_features": 8})", "\"out_features\" is missing"},
      {R"({"in_features": 8, "out_features": 4, "activation_function": "my.Act"})", "not my.Act"},
      {R"({"in_features": 8, "out_features": 4, "module_input_name": "token_embeddings"})",
       "only sentence_embedding"}};
  for (const auto& [config, message] : cases) {
    const Result<DenseModule> dense = ReadDense(config);
    ASSERT_FALSE(dense.ok()) << config;
    EXPECT_THAT(dense.status().message(), HasSubstr(message));
  }
}

TEST_F(PipelineTest, RefusesAnUnknownModuleByIndexAndName) {
  WriteModules(
      {{"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2", "st_quantize.FlexibleQuantizer"}});
  EXPECT_EQ(Error().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Error().message(), HasSubstr("module 2"));
  EXPECT_THAT(Error().message(), HasSubstr("st_quantize.FlexibleQuantizer"));
}

TEST_F(PipelineTest, RefusesOrdersThatMakeNoRow) {
  WriteModules({{"1_Pooling", "Pooling"}, {"", "Transformer"}});
  EXPECT_THAT(Error().message(), HasSubstr("must be the first module"));
  WriteModules({{"", "Transformer"}});
  EXPECT_THAT(Error().message(), HasSubstr("without Pooling"));
  WriteModules({{"", "Transformer"}, {"n", "Normalize"}, {"1_Pooling", "Pooling"}});
  EXPECT_THAT(Error().message(), HasSubstr("before a Pooling"));
  WriteModules({{"", "Transformer"}, {"1_Pooling", "Pooling"}, {"1_Pooling", "Pooling"}});
  EXPECT_THAT(Error().message(), HasSubstr("only one Pooling"));
}

TEST_F(PipelineTest, RefusesAPathThatLeavesTheFolder) {
  for (const char* path : {"../other", "/etc", "a/../../b"}) {
    WriteModules({{"", "Transformer"}, {path, "Pooling"}});
    EXPECT_THAT(Error().message(), HasSubstr("inside the model folder"));
  }
}

TEST_F(PipelineTest, RefusesModulesFilesOfAnotherShape) {
  for (const char* text : {"{}", "[]", "[1]", R"([{"path": ""}])", "[", R"([{"type": 3}])"}) {
    Write("modules.json", text);
    EXPECT_EQ(Error().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Error().message(), HasSubstr("modules.json")) << text;
  }
}

}  // namespace
}  // namespace bouquet::model
