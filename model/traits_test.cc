#include "model/traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/config_file.h"

namespace bouquet::model {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBert = R"("model_type": "bert", "architectures": ["BertModel"],
  "num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536,
  "vocab_size": 30522, "max_position_embeddings": 512)";
constexpr const char* kXlmRoberta = R"("model_type": "xlm-roberta",
  "architectures": ["XLMRobertaModel"], "num_hidden_layers": 24, "hidden_size": 1024,
  "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 250002,
  "max_position_embeddings": 8194, "type_vocab_size": 1, "layer_norm_eps": 1e-05,
  "hidden_act": "gelu", "pad_token_id": 1)";
constexpr const char* kMpnet = R"("model_type": "mpnet", "architectures": ["MPNetForMaskedLM"],
  "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
  "intermediate_size": 3072, "vocab_size": 30527, "max_position_embeddings": 514,
  "layer_norm_eps": 1e-05, "hidden_act": "gelu", "pad_token_id": 1,
  "relative_attention_num_buckets": 32)";
constexpr const char* kDistilBert = R"("model_type": "distilbert", "n_layers": 6, "dim": 768,
  "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
  "activation": "gelu", "sinusoidal_pos_embds": false)";
constexpr const char* kQwen3 = R"("model_type": "qwen3", "num_hidden_layers": 28,
  "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
  "intermediate_size": 3072, "vocab_size": 151669, "max_position_embeddings": 32768)";

// Later keys of `more` stand in front, where look-ups find them first.
Result<Traits> Parse(const std::string& more, const std::string& base) {
  const std::string text = "{" + more + (more.empty() ? "" : ", ") + base + "}";
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, "config.json"));
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document.root(), "config.json"));
  return ParseTraits(config);
}

TEST(TraitsTest, ReadsBertWithItsDefaults) {
  const Result<Traits> traits = Parse("", kBert);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_EQ(traits->architecture, Architecture::kBert);
  EXPECT_EQ(traits->class_name, "BertModel");
  EXPECT_EQ(traits->num_key_value_heads, 12);
  EXPECT_EQ(traits->head_dim, 32);
  EXPECT_EQ(traits->token_types, 2);
  EXPECT_EQ(traits->hidden_act, "gelu");
  EXPECT_FLOAT_EQ(traits->norm_epsilon, 1e-12F);
  EXPECT_FALSE(traits->causal);
  EXPECT_EQ(traits->rope_theta, 0);
  EXPECT_EQ(traits->position_rows, 512);
  EXPECT_EQ(traits->position_offset, 0);
  EXPECT_EQ(traits->max_positions, 512);
}

TEST(TraitsTest, ReadsXlmRobertaWithPositionsBehindThePaddingRow) {
  const Result<Traits> traits = Parse("", kXlmRoberta);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_EQ(traits->architecture, Architecture::kRoberta);
  EXPECT_EQ(traits->vocabulary_rows, 250'002);
  EXPECT_EQ(traits->position_rows, 8194);
  EXPECT_EQ(traits->position_offset, 2);
  EXPECT_EQ(traits->max_positions, 8192);
  EXPECT_EQ(traits->head_dim, 64);
  EXPECT_EQ(traits->token_types, 1);
  EXPECT_FLOAT_EQ(traits->norm_epsilon, 1e-5F);
  EXPECT_FALSE(traits->causal);
}

TEST(TraitsTest, ReadsRobertaAsTheSameNetwork) {
  const Result<Traits> traits =
      Parse(R"("model_type": "roberta", "max_position_embeddings": 514)", kXlmRoberta);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_EQ(traits->architecture, Architecture::kRoberta);
  EXPECT_EQ(traits->max_positions, 512);
}

TEST(TraitsTest, TakesThePaddingRowFromTheConfig) {
  const Result<Traits> first = Parse(R"("pad_token_id": 0)", kXlmRoberta);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(first->position_offset, 1);
  EXPECT_EQ(first->max_positions, 8193);
  const Result<Traits> unstated = Parse(R"("pad_token_id": null)", kXlmRoberta);
  ASSERT_TRUE(unstated.ok()) << unstated.status().ToString();
  EXPECT_EQ(unstated->position_offset, 2);
  EXPECT_EQ(Parse(R"("pad_token_id": 0)", kBert)->position_offset, 0);
}

TEST(TraitsTest, ReadsQwen3AsCausalWithStatedHeadDim) {
  const Result<Traits> traits = Parse(R"("rope_theta": 1000000, "attention_bias": true)", kQwen3);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_EQ(traits->architecture, Architecture::kQwen3);
  EXPECT_EQ(traits->num_key_value_heads, 8);
  EXPECT_EQ(traits->head_dim, 128);
  EXPECT_EQ(traits->token_types, 0);
  EXPECT_EQ(traits->position_rows, 0);
  EXPECT_EQ(traits->max_positions, 32768);
  EXPECT_TRUE(traits->causal);
  EXPECT_TRUE(traits->attention_bias);
  EXPECT_FLOAT_EQ(traits->rope_theta, 1e6F);
  EXPECT_FLOAT_EQ(traits->norm_epsilon, 1e-6F);
}

TEST(TraitsTest, ReadsRopeParametersAsNewerFilesWriteThem) {
  const Result<Traits> traits =
      Parse(R"("rope_parameters": {"rope_theta": 5000000.0, "rope_type": "default"})", kQwen3);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_FLOAT_EQ(traits->rope_theta, 5e6F);
}

TEST(TraitsTest, TakesEachWayOfSayingBidirectional) {
  for (const char* more :
       {R"("is_causal": false)", R"("use_bidirectional_attention": true)",
        R"("model_type": "bidirectional_pplx_qwen3")", R"("architectures": ["PPLXQwen3Model"])"}) {
    const Result<Traits> traits = Parse(more, kQwen3);
    ASSERT_TRUE(traits.ok()) << more << traits.status().ToString();
    EXPECT_FALSE(traits->causal) << more;
  }
}

TEST(TraitsTest, ReadsMpnetWithBiasesByDistanceAndNoTokenTypes) {
  const Result<Traits> traits = Parse("", kMpnet);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_EQ(traits->architecture, Architecture::kMpnet);
  EXPECT_EQ(traits->relative_attention_buckets, 32);
  EXPECT_EQ(traits->token_types, 0);
  EXPECT_EQ(traits->head_dim, 64);
  EXPECT_EQ(traits->num_key_value_heads, 12);
  EXPECT_EQ(traits->position_rows, 514);
  EXPECT_EQ(traits->max_positions, 512);
  EXPECT_FLOAT_EQ(traits->norm_epsilon, 1e-5F);
}

TEST(TraitsTest, StartsMpnetsPositionsAtRowTwoWhateverPadsIt) {
  for (const char* padding : {R"("pad_token_id": 7)", R"("pad_token_id": null)"}) {
    const Result<Traits> traits = Parse(padding, kMpnet);
    ASSERT_TRUE(traits.ok()) << traits.status().ToString();
    EXPECT_EQ(traits->position_offset, 2) << padding;
  }
}

TEST(TraitsTest, ReadsDistilBertByItsOwnKeys) {
  const Result<Traits> traits = Parse("", kDistilBert);
  ASSERT_TRUE(traits.ok()) << traits.status().ToString();
  EXPECT_EQ(traits->architecture, Architecture::kDistilBert);
  EXPECT_EQ(traits->num_hidden_layers, 6);
  EXPECT_EQ(traits->hidden_size, 768);
  EXPECT_EQ(traits->num_attention_heads, 12);
  EXPECT_EQ(traits->intermediate_size, 3072);
  EXPECT_EQ(traits->hidden_act, "gelu");
  EXPECT_EQ(traits->token_types, 0);
  EXPECT_EQ(traits->relative_attention_buckets, 0);
  EXPECT_EQ(traits->position_offset, 0);
  EXPECT_EQ(traits->max_positions, 512);
  EXPECT_FLOAT_EQ(traits->norm_epsilon, 1e-12F);
}

struct BadConfig {
  const char* more;
  const char* base;
  StatusCode code;
  const char* message;
};

TEST(TraitsTest, RefusesWhatItCannotServeByKeyAndValue) {
  const BadConfig cases[] = {
      {R"("model_type": "t5")", kBert, StatusCode::kUnimplemented, "\"model_type\" t5"},
      {R"("model_type": null)", "\"x\": 1", StatusCode::kInvalidArgument,
       "\"model_type\" is missing"},
      {R"("hidden_act": "swish2")", kBert, StatusCode::kUnimplemented, "\"hidden_act\" swish2"},
      {R"("position_embedding_type": "relative_key")", kBert, StatusCode::kUnimplemented,
       "relative_key"},
      {R"("is_decoder": true)", kBert, StatusCode::kUnimplemented, "is_decoder"},
      {R"("num_attention_heads": 7)", kBert, StatusCode::kInvalidArgument, "384 and 7"},
      {R"("hidden_size": 0)", kBert, StatusCode::kInvalidArgument, "\"hidden_size\" must be 1"},
      {R"("hidden_size": "384")", kBert, StatusCode::kInvalidArgument, "\"hidden_size\""},
      {R"("layer_norm_eps": 0)", kBert, StatusCode::kInvalidArgument, "layer_norm_eps"},
      {R"("num_hidden_layers": 99999999)", kBert, StatusCode::kInvalidArgument, "1..1000"},
      {R"("architectures": "BertModel")", kBert, StatusCode::kInvalidArgument, "architectures"},
      {R"("model_type": "xlm-roberta-xl")", kXlmRoberta, StatusCode::kUnimplemented,
       "\"model_type\" xlm-roberta-xl"},
      {R"("position_embedding_type": "relative_key_query")", kXlmRoberta,
       StatusCode::kUnimplemented, "relative_key_query"},
      {R"("is_decoder": true)", kXlmRoberta, StatusCode::kUnimplemented, "is_decoder"},
      {R"("pad_token_id": -1)", kXlmRoberta, StatusCode::kInvalidArgument, "\"pad_token_id\""},
      {R"("pad_token_id": 250002)", kXlmRoberta, StatusCode::kInvalidArgument, "0..250001"},
      {R"("pad_token_id": "<pad>")", kXlmRoberta, StatusCode::kInvalidArgument, "\"pad_token_id\""},
      {R"("max_position_embeddings": 2)", kXlmRoberta, StatusCode::kInvalidArgument, "2 and 2"},
      {R"("pad_token_id": 9000)", kXlmRoberta, StatusCode::kInvalidArgument, "8194 and 9001"},
      {R"("type_vocab_size": 0)", kXlmRoberta, StatusCode::kInvalidArgument, "\"type_vocab_size\""},
      {R"("model_type": "deberta")", kMpnet, StatusCode::kUnimplemented, "mpnet, distilbert"},
      {R"("relative_attention_num_buckets": 64)", kMpnet, StatusCode::kUnimplemented,
       "\"relative_attention_num_buckets\" 64"},
      {R"("max_position_embeddings": 2)", kMpnet, StatusCode::kInvalidArgument, "2 and 2"},
      {R"("activation": "tanh")", kDistilBert, StatusCode::kUnimplemented, "\"activation\" tanh"},
      {R"("n_heads": 7)", kDistilBert, StatusCode::kInvalidArgument,
       "\"dim\" must be a multiple of \"n_heads\": 768 and 7"},
      {R"("hidden_dim": 0)", kDistilBert, StatusCode::kInvalidArgument, "\"hidden_dim\""},
      {R"("num_key_value_heads": 5)", kQwen3, StatusCode::kInvalidArgument, "16 and 5"},
      {R"("head_dim": 33)", kQwen3, StatusCode::kInvalidArgument, "must be even"},
      {R"("rope_scaling": {"rope_type": "yarn"})", kQwen3, StatusCode::kUnimplemented, "yarn"},
      {R"("rope_scaling": {"type": "dynamic"})", kQwen3, StatusCode::kUnimplemented, "dynamic"},
      {R"("use_sliding_window": true)", kQwen3, StatusCode::kUnimplemented, "use_sliding_window"},
      {R"("layer_types": ["full_attention", "sliding_attention"])", kQwen3,
       StatusCode::kUnimplemented, "sliding_attention"},
      {R"("is_causal": true, "use_bidirectional_attention": true)", kQwen3,
       StatusCode::kInvalidArgument, "cannot both be true"},
  };
  for (const BadConfig& bad : cases) {
    const Result<Traits> traits = Parse(bad.more, bad.base);
    ASSERT_FALSE(traits.ok()) << bad.more;
    EXPECT_EQ(traits.code(), bad.code) << bad.more;
    EXPECT_THAT(traits.status().message(), HasSubstr(bad.message)) << bad.more;
    EXPECT_THAT(traits.status().message(), HasSubstr("config.json")) << bad.more;
  }
}

TEST(TraitsTest, NamesTheMissingSize) {
  const Result<Traits> traits =
      Parse(R"("model_type": "bert", "num_hidden_layers": 2)", "\"x\": 1");
  ASSERT_FALSE(traits.ok());
  EXPECT_EQ(traits.status().field(), "hidden_size");
}

TEST(ConfigFileTest, WidensOnlyIntegersThatDoNotFit) {
  EXPECT_EQ(WidenHugeIntegers(R"({"a": 1000000000000000019884624838656, "b": 12})"),
            R"({"a": 1000000000000000019884624838656e0, "b": 12})");
  const std::string untouched =
      R"({"s": "1000000000000000019884624838656 \" 12345678901234567890",
          "f": 0.1234567890123456789012})";
  EXPECT_EQ(WidenHugeIntegers(untouched), untouched);
}

}  // namespace
}  // namespace bouquet::model
