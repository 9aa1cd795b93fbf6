#include "rose/weights/weight_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rose/weights/name_map.h"
#include "rose/weights/parameter_count.h"
#include "testing/random_model.h"
#include "testing/test_data.h"

namespace bouquet::rose {
namespace {

using ::bouquet::testing::TemporaryFolder;
using ::bouquet::testing::WriteSafetensors;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool NothingIsHarmless(std::string_view /*name*/) { return false; }

class WeightSetTest : public ::testing::Test {
 protected:
  WeightSetTest() {
    WriteSafetensors(path(),
                     {{"bert.a.weight", {{2, 3}, {0, 1, 2, 3, 4, 5}}},
                      {"bert.b.LayerNorm.gamma", {{2}, {7, 8}}},
                      {"int64:bert.ids", {{2}, {0, 1}}}},
                     "F32");
  }
  std::filesystem::path path() const { return folder_.path() / "w.safetensors"; }
  WeightSet Open() const {
    WeightSet set = WeightSet::Open({path()}).value();
    set.set_prefix("bert.");
    return set;
  }
  TemporaryFolder folder_;
};

TEST_F(WeightSetTest, TakesTensorsUnderTheirPrefix) {
  WeightSet set = Open();
  const Result<HostTensor> matrix = set.TakeMatrix("a.weight", 2, 3);
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  EXPECT_EQ(static_cast<const float*>(matrix->data)[5], 5);
  EXPECT_EQ(set.CountTaken([](std::string_view name) { return name == "a.weight"; }), 6);
}

TEST_F(WeightSetTest, TakesTheOlderNamesOfLayerNorm) {
  WeightSet set = Open();
  const Result<HostTensor> vector = set.TakeVector("b.LayerNorm.weight", 2);
  ASSERT_TRUE(vector.ok()) << vector.status().ToString();
  EXPECT_EQ(vector->rows, 1);
  EXPECT_EQ(vector->cols, 2);
}

TEST_F(WeightSetTest, NamesWhatIsMissingOrOfAnotherShapeOrDtype) {
  WeightSet set = Open();
  const Status missing = set.TakeMatrix("c.weight", 4, 4).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.field(), "c.weight");
  EXPECT_THAT(missing.message(),
              AllOf(HasSubstr("bert.c.weight"), HasSubstr("[4, 4]"), HasSubstr(path().string())));
  const Status shape = set.TakeMatrix("a.weight", 3, 2).status();
  EXPECT_EQ(shape.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(shape.message(), AllOf(HasSubstr("bert.a.weight"), HasSubstr(path().string()),
                                     HasSubstr("expected [3, 2], found [2, 3]")));
  EXPECT_THAT(set.TakeVector("a.weight", 6).status().message(), HasSubstr("expected [6]"));
  EXPECT_THAT(set.TakeVector("ids", 2).status().message(),
              HasSubstr("expected F32, F16 or BF16, found I64"));
}

TEST_F(WeightSetTest, NamesWhatIsLeftOver) {
  WeightSet set = Open();
  ASSERT_TRUE(set.TakeMatrix("a.weight", 2, 3).ok());
  ASSERT_TRUE(set.TakeVector("b.LayerNorm.weight", 2).ok());
  const Status left = set.CheckNothingLeft(NothingIsHarmless);
  EXPECT_EQ(left.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(left.message(), AllOf(HasSubstr("bert.ids"), HasSubstr(path().string())));
  EXPECT_TRUE(set.CheckNothingLeft([](std::string_view name) { return name == "ids"; }).ok());
}

TEST_F(WeightSetTest, RefusesANameThatTwoFilesHold) {
  const std::filesystem::path other = folder_.path() / "w2.safetensors";
  WriteSafetensors(other, {{"bert.a.weight", {{1, 1}, {0}}}}, "F32");
  const Status twice = WeightSet::Open({path(), other}).status();
  EXPECT_THAT(twice.message(), AllOf(HasSubstr("bert.a.weight"), HasSubstr("w2.safetensors")));
}

TEST(NameMapTest, FindsThePrefixByTheWordEmbedding) {
  for (const char* prefix : {"", "bert.", "model.", "roberta."}) {
    const std::string stored = std::string(prefix) + "embeddings.word_embeddings.weight";
    EXPECT_EQ(FindNamePrefix(model::Architecture::kBert,
                             [&](std::string_view name) { return name == stored; }),
              prefix);
  }
  EXPECT_EQ(FindNamePrefix(model::Architecture::kRoberta,
                           [](std::string_view name) {
                             return name == "roberta.embeddings.word_embeddings.weight";
                           }),
            "roberta.");
  EXPECT_EQ(FindNamePrefix(model::Architecture::kMpnet,
                           [](std::string_view name) {
                             return name == "mpnet.embeddings.word_embeddings.weight";
                           }),
            "mpnet.");
  EXPECT_EQ(FindNamePrefix(model::Architecture::kDistilBert,
                           [](std::string_view name) {
                             return name == "distilbert.embeddings.word_embeddings.weight";
                           }),
            "distilbert.");
  EXPECT_EQ(
      FindNamePrefix(model::Architecture::kQwen3,
                     [](std::string_view name) { return name == "model.embed_tokens.weight"; }),
      "model.");
  EXPECT_FALSE(FindNamePrefix(model::Architecture::kQwen3, NothingIsHarmless).has_value());
}

TEST(NameMapTest, ExcusesOnlyWhatIsKnownToBeUnused) {
  using model::Architecture;
  EXPECT_TRUE(HarmlessReason(Architecture::kBert, "embeddings.position_ids").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kBert, "pooler.dense.weight").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kBert, "cls.predictions.bias").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kRoberta, "embeddings.position_ids").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kRoberta, "pooler.dense.weight").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kRoberta, "lm_head.layer_norm.weight").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kMpnet, "pooler.dense.weight").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kMpnet, "lm_head.dense.weight").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kDistilBert, "vocab_projector.bias").has_value());
  EXPECT_TRUE(HarmlessReason(Architecture::kQwen3, "lm_head.weight").has_value());
  EXPECT_TRUE(
      HarmlessReason(Architecture::kQwen3, "layers.0.self_attn.rotary_emb.inv_freq").has_value());
  EXPECT_FALSE(HarmlessReason(Architecture::kBert, "classifier.weight").has_value());
  EXPECT_FALSE(HarmlessReason(Architecture::kBert, "lm_head.weight").has_value());
  EXPECT_FALSE(HarmlessReason(Architecture::kRoberta, "classifier.dense.weight").has_value());
  EXPECT_FALSE(HarmlessReason(Architecture::kMpnet, "classifier.dense.weight").has_value());
  EXPECT_FALSE(HarmlessReason(Architecture::kDistilBert, "pre_classifier.weight").has_value());
  EXPECT_FALSE(
      HarmlessReason(Architecture::kQwen3, "layers.0.self_attn.q_proj.lora_A").has_value());
}

// The published sizes (design/models.md section 1).
TEST(ParameterCountTest, GivesThePublishedNumbers) {
  model::Traits bert;
  bert.architecture = model::Architecture::kBert;
  bert.num_hidden_layers = 6;
  bert.hidden_size = 384;
  bert.intermediate_size = 1536;
  bert.vocabulary_rows = 30522;
  bert.position_rows = 512;
  bert.token_types = 2;
  constexpr int64_t kPooler = 384 * 384 + 384;
  EXPECT_EQ(ExpectedParameters(bert).total() + kPooler, 22'713'216);

  model::Traits bge_m3;
  bge_m3.architecture = model::Architecture::kRoberta;
  bge_m3.num_hidden_layers = 24;
  bge_m3.hidden_size = 1024;
  bge_m3.intermediate_size = 4096;
  bge_m3.vocabulary_rows = 250'002;
  bge_m3.position_rows = 8194;
  bge_m3.max_positions = 8192;
  bge_m3.token_types = 1;
  constexpr int64_t kLargePooler = 1024 * 1024 + 1024;
  EXPECT_EQ(ExpectedParameters(bge_m3).total(), 566'705'152);
  EXPECT_EQ(ExpectedParameters(bge_m3).total() + kLargePooler, 567'754'752);

  model::Traits mpnet;
  mpnet.architecture = model::Architecture::kMpnet;
  mpnet.num_hidden_layers = 12;
  mpnet.hidden_size = 768;
  mpnet.num_attention_heads = 12;
  mpnet.intermediate_size = 3072;
  mpnet.vocabulary_rows = 30527;
  mpnet.position_rows = 514;
  mpnet.relative_attention_buckets = 32;
  constexpr int64_t kBasePooler = 768 * 768 + 768;
  EXPECT_EQ(ExpectedParameters(mpnet).total() + kBasePooler, 109'486'464);

  model::Traits distilbert;
  distilbert.architecture = model::Architecture::kDistilBert;
  distilbert.num_hidden_layers = 6;
  distilbert.hidden_size = 768;
  distilbert.num_attention_heads = 12;
  distilbert.intermediate_size = 3072;
  distilbert.vocabulary_rows = 30522;
  distilbert.position_rows = 512;
  EXPECT_EQ(ExpectedParameters(distilbert).total(), 66'362'880);

  model::Traits qwen;
  qwen.architecture = model::Architecture::kQwen3;
  qwen.num_hidden_layers = 28;
  qwen.hidden_size = 1024;
  qwen.num_attention_heads = 16;
  qwen.num_key_value_heads = 8;
  qwen.head_dim = 128;
  qwen.intermediate_size = 3072;
  qwen.vocabulary_rows = 151'669;
  EXPECT_EQ(ExpectedParameters(qwen).total(), 595'776'512);
}

}  // namespace
}  // namespace bouquet::rose
