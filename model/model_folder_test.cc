#include "model/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/identity.h"
#include "testing/random_model.h"
#include "testing/test_data.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;
using ::bouquet::testing::ReadFile;
using ::bouquet::testing::TemporaryFolder;
using ::bouquet::testing::WriteFile;
using ::bouquet::testing::WriteRandomModel;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() { WriteRandomModel(path(), {.dense_out_features = 16}); }

  fs::path path() const { return folder_.path() / "tiny"; }
  Result<ModelFolder> Open() const { return ModelFolder::Open(path()); }
  int32_t MaxInputTokens() const { return Open().value().max_input_tokens; }

  TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, OpensATinyFolder) {
  const Result<ModelFolder> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->name, "tiny");
  EXPECT_EQ(model->traits.hidden_size, 72);
  EXPECT_EQ(model->pipeline.width, 16);
  EXPECT_TRUE(model->pipeline.ends_normalized);
  EXPECT_THAT(model->weight_files, SizeIs(1));
  EXPECT_TRUE(model->prompts.by_name.empty());
  EXPECT_FALSE(model->truncate_dim.has_value());
}

TEST_F(ModelFolderTest, NamesEachRequiredFileThatIsMissing) {
  const std::pair<const char*, const char*> required[] = {
      {"config.json", "the shape of the network"},
      {"model.safetensors", "the weights"},
      {"1_Pooling/config.json", "the pooling of module 1"},
      {"2_Dense/config.json", "the sizes of module 2"},
      {"2_Dense/model.safetensors", "the weights"}};
  for (const auto& [name, purpose] : required) {
    const std::string content = ReadFile(path() / name);
    fs::remove(path() / name);
    const Status error = Open().status();
    EXPECT_EQ(error.code(), StatusCode::kNotFound) << name;
    EXPECT_THAT(error.message(), HasSubstr((path() / name).string()));
    EXPECT_THAT(error.message(), HasSubstr(purpose));
    WriteFile(path() / name, content);
  }
  EXPECT_TRUE(Open().ok());
}

TEST_F(ModelFolderTest, OptionalFilesHaveDefaults) {
  fs::remove(path() / "modules.json");
  const Result<ModelFolder> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->pipeline.width, 72);
  EXPECT_FALSE(model->pipeline.ends_normalized);
  EXPECT_EQ(model->max_input_tokens, 640) << "the positions, when no file states a length";
  EXPECT_FALSE(model->do_lower_case);
}

TEST_F(ModelFolderTest, NamesAFolderThatDoesNotExist) {
  const Status error = ModelFolder::Open(path() / "absent").status();
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("absent"));
}

TEST_F(ModelFolderTest, TakesTheLengthFromTheModuleFileFirst) {
  WriteFile(path() / "tokenizer_config.json", R"({"model_max_length": 100})");
  EXPECT_EQ(MaxInputTokens(), 100);
  WriteFile(path() / "sentence_bert_config.json",
            R"({"max_seq_length": 256, "do_lower_case": true})");
  EXPECT_EQ(MaxInputTokens(), 256);
  EXPECT_TRUE(Open()->do_lower_case);
  WriteFile(path() / "sentence_bert_config.json", R"({"max_seq_length": 10000})");
  EXPECT_EQ(MaxInputTokens(), 640) << "never above the positions";
  WriteFile(path() / "sentence_bert_config.json", R"({"max_seq_length": null})");
  EXPECT_EQ(MaxInputTokens(), 100);
}

TEST_F(ModelFolderTest, ReadsTheOlderNamesOfTheModuleFile) {
  for (const char* kind :
       {"roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const fs::path file = path() / ("sentence_" + std::string(kind) + "_config.json");
    WriteFile(file, R"({"max_seq_length": 33})");
    EXPECT_EQ(MaxInputTokens(), 33) << kind;
    fs::remove(file);
  }
}

TEST_F(ModelFolderTest, TakesATokenizerWithoutLimit) {
  WriteFile(path() / "tokenizer_config.json",
            R"({"model_max_length": 1000000000000000019884624838656, "x": 1})");
  EXPECT_EQ(MaxInputTokens(), 640);
}

TEST_F(ModelFolderTest, ReadsTheModuleFileOfCurrentReleases) {
  WriteFile(path() / "sentence_bert_config.json",
            R"({"transformer_task": "feature-extraction", "module_output_name": "token_embeddings",
                "modality_config": {"text": {"method": "forward"}}})");
  EXPECT_EQ(MaxInputTokens(), 640);
  WriteFile(path() / "sentence_bert_config.json", R"({"transformer_task": "fill-mask"})");
  EXPECT_EQ(Open().code(), StatusCode::kUnimplemented);
}

TEST_F(ModelFolderTest, ReadsPromptsAndTheDefaultOne) {
  WriteFile(path() / "config_sentence_transformers.json",
            R"({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query",
                "truncate_dim": 8})");
  const Result<ModelFolder> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->prompts.by_name.at("query"), "query: ");
  EXPECT_EQ(model->prompts.by_name.at("document"), "");
  EXPECT_EQ(model->prompts.default_name, "query");
  EXPECT_EQ(model->truncate_dim, 8);
}

TEST_F(ModelFolderTest, RefusesBadPromptFiles) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"prompts": {"query": 1}})", "prompt \"query\" must be a string"},
      {R"({"prompts": {}, "default_prompt_name": "query"})", "must be one of the 0 prompts: query"},
      {R"({"truncate_dim": 17})", "must be 1..16, not 17"},
      {R"({"truncate_dim": 0})", "truncate_dim"},
      {R"({"model_type": "CrossEncoder"})", "CrossEncoder is not served"},
      {"[]", "must be a JSON object"},
      {"{", "not valid JSON"}};
  for (const auto& [text, message] : cases) {
    WriteFile(path() / "config_sentence_transformers.json", text);
    EXPECT_THAT(Open().status().message(), HasSubstr(message)) << text;
  }
}

TEST_F(ModelFolderTest, SaysHowToConvertPickledWeights) {
  fs::rename(path() / "model.safetensors", path() / "pytorch_model.bin");
  const Status error = Open().status();
  EXPECT_EQ(error.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(error.message(), HasSubstr("pytorch_model.bin"));
  EXPECT_THAT(error.message(), HasSubstr("save_file"));
}

TEST_F(ModelFolderTest, ListsShardsInOrderAndNamesAMissingOne) {
  fs::remove(path() / "model.safetensors");
  WriteRandomModel(path(), {.shards = 3, .dense_out_features = 16});
  ASSERT_THAT(Open()->weight_files, SizeIs(3));
  EXPECT_EQ(Open()->weight_files[1].filename(), "model-00002-of-00003.safetensors");
  fs::remove(path() / "model-00002-of-00003.safetensors");
  EXPECT_EQ(Open().code(), StatusCode::kNotFound);
  EXPECT_THAT(Open().status().message(), HasSubstr("model-00002-of-00003.safetensors"));
}

TEST_F(ModelFolderTest, RefusesABadShardIndex) {
  fs::remove(path() / "model.safetensors");
  for (const char* text : {R"({})", R"({"weight_map": {}})", R"({"weight_map": {"a": 1}})",
                           R"({"weight_map": {"a": "../model.safetensors"}})",
                           R"({"weight_map": {"a": "model.bin"}})"}) {
    WriteFile(path() / "model.safetensors.index.json", text);
    EXPECT_EQ(Open().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(Open().status().field(), "weight_map") << text;
  }
}

TEST_F(ModelFolderTest, IdentityFollowsWhatDecidesTheVectorsOnly) {
  const std::string before = Open()->identity;
  EXPECT_THAT(before, ::testing::MatchesRegex("fnv1a128-[0-9a-f]+"));
  WriteFile(path() / "tokenizer_config.json", R"({"model_max_length": 100})");
  WriteFile(path() / "config_sentence_transformers.json", R"({"prompts": {"a": "b"}})");
  EXPECT_EQ(Open()->identity, before);

  TemporaryFolder other;
  WriteRandomModel(other.path() / "renamed", {.dense_out_features = 16});
  EXPECT_EQ(ModelFolder::Open(other.path() / "renamed")->identity, before);
  WriteRandomModel(other.path() / "reseeded", {.seed = 2, .dense_out_features = 16});
  EXPECT_NE(ModelFolder::Open(other.path() / "reseeded")->identity, before);

  const std::string config = ReadFile(path() / "2_Dense/config.json");
  WriteFile(path() / "2_Dense/config.json", config + " ");
  EXPECT_NE(Open()->identity, before);
}

TEST(IdentityTest, HashesAsPublished) {
  Fnv1a128 hash;
  EXPECT_EQ(hash.Hex(), "6c62272e07bb014262b821756295c58d");
  hash.Add("a");
  EXPECT_EQ(hash.Hex(), "d228cb696f1a8caf78912b704e4a8964");
}

TEST(ModelFolderRealTest, OpensTheDemoModel) {
  REQUIRE_DEMO_MODEL();
  const Result<ModelFolder> model = ModelFolder::Open(::bouquet::testing::DemoModelPath());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->name, "all-MiniLM-L6-v2");
  EXPECT_EQ(model->max_input_tokens, 256);
  EXPECT_EQ(model->pipeline.width, 384);
  EXPECT_TRUE(model->pipeline.ends_normalized);
}

}  // namespace
}  // namespace bouquet::model
