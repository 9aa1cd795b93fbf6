#include "text/sentencepiece_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"
#include "testing/test_data.h"
#include "text/encode_scratch.h"
#include "text/small_sentencepiece.h"
#include "text/small_tokenizer.h"
#include "text/text_pipeline.h"

namespace bouquet::text {
namespace {

using sentencepiece::Model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = SentencePieceUse::Kind;

std::vector<int32_t> Ids(const Tokenizer& tokenizer, std::string_view text) {
  static EncodeScratch scratch;
  std::vector<int32_t> ids;
  EXPECT_TRUE(tokenizer.Encode(text, {}, scratch, ids).ok());
  return ids;
}

std::vector<int32_t> Ids(const Model& model, std::string_view text,
                         const SentencePieceUse& use = {}) {
  const auto file = ParseSentencePiece(model.SerializeAsString(), "m", use, false);
  EXPECT_TRUE(file.ok()) << file.status().ToString();
  return Ids(*file.value().tokenizer, text);
}

TEST(SentencePieceFileTest, ReadsAUnigramModelWithItsRulesForSpaces) {
  const Model model = SmallUnigramModel();
  EXPECT_THAT(Ids(model, "ab"), ElementsAre(7));
  EXPECT_THAT(Ids(model, "  ab   a "), ElementsAre(7, 6));     // extra spaces go
  EXPECT_THAT(Ids(model, "aAe\u0301"), ElementsAre(6, 4, 8));  // the charsmap
  EXPECT_THAT(Ids(model, "\nab"), ElementsAre(3, 0, 4, 5));    // only spaces are extra
  EXPECT_THAT(Ids(model, ""), ElementsAre());
  EXPECT_THAT(Ids(model, "  "), ElementsAre());
  EXPECT_THAT(Ids(model, "a<s>b</s>"), ElementsAre(6, 1, 3, 5, 2));
  Model kept = model;
  kept.mutable_normalizer_spec()->set_remove_extra_whitespaces(false);
  EXPECT_THAT(Ids(kept, " a "), ElementsAre(3, 6, 3));
  kept.mutable_normalizer_spec()->set_add_dummy_prefix(false);
  EXPECT_THAT(Ids(kept, "a a"), ElementsAre(4, 6));
}

TEST(SentencePieceFileTest, ReadsABpeModelWhoseScoresAreTheOrderOfMerges) {
  EXPECT_THAT(Ids(SmallBpeModel(), "ab"), ElementsAre(5));
  EXPECT_THAT(Ids(SmallBpeModel(), "aab  a"), ElementsAre(3, 4, 7, 3));
  Model other = SmallBpeModel();
  other.mutable_pieces(4)->set_score(1);  // "ab" before "▁a": "▁ab" is still made of the two
  EXPECT_THAT(Ids(other, "ab"), ElementsAre(5));
  other.mutable_pieces(5)->set_type(Model::Piece::UNUSED);
  EXPECT_THAT(Ids(other, "ab"), ElementsAre(7, 4));
}

TEST(SentencePieceFileTest, FallsBackToBytesWhereTheModelHasThem) {
  Model model = SmallBpeModel();
  model.mutable_trainer_spec()->set_byte_fallback(true);
  for (const char* byte : {"<0xE4>", "<0xB8>", "<0xAD>"}) {
    Model::Piece* piece = model.add_pieces();
    piece->set_piece(byte);
    piece->set_type(Model::Piece::BYTE);
  }
  EXPECT_THAT(Ids(model, "a\u4E2D\u4E2Eb"), ElementsAre(3, 11, 12, 13, 0, 9));
}

TEST(SentencePieceFileTest, PrefixesEverySectionOrOnlyTheFirst) {
  EXPECT_THAT(Ids(SmallBpeModel(), "a<s>a"), ElementsAre(3, 1, 3));
  EXPECT_THAT(Ids(SmallBpeModel(), "a<s>a", {.prefixes_every_section = false}),
              ElementsAre(3, 1, 8));
}

TEST(SentencePieceFileTest, AddsIdsForT5AndMovesThemForXlmRoberta) {
  const Model model = SmallUnigramModel();
  const SentencePieceUse t5 = {.kind = Kind::kT5, .num_extra_ids = 3};
  EXPECT_THAT(Ids(model, "ab <extra_id_0><extra_id_2>\n a", t5), ElementsAre(7, 11, 9, 6));
  const SentencePieceUse xlm = {.kind = Kind::kXlmRoberta};
  EXPECT_THAT(Ids(model, "<s>ab\nb <mask>x", xlm), ElementsAre(0, 8, 4, 6, 10, 4, 3));
}

TEST(SentencePieceFileTest, TakesTheUseFromTokenizerConfig) {
  const testing::TemporaryFolder folder;
  WriteFile(folder.path() / "tokenizer.model", SmallBpeModel().SerializeAsString());
  EncodeScratch scratch;
  const auto framed = [&](std::string_view config) {
    if (!config.empty()) {
      WriteFile(folder.path() / "tokenizer_config.json", config);
    }
    return TextPipeline::Load(folder.path(), false).value()->Encode("a", {}, scratch).value().ids;
  };
  EXPECT_THAT(framed(""), ElementsAre(3));
  EXPECT_THAT(framed("{}"), ElementsAre(3));
  EXPECT_THAT(framed(R"({"tokenizer_class": "LlamaTokenizerFast"})"), ElementsAre(1, 3));
  EXPECT_THAT(framed(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false,
                         "add_eos_token": true})"),
              ElementsAre(3, 2));
  EXPECT_THAT(framed(R"({"tokenizer_class": "T5Tokenizer"})"), ElementsAre(3, 2));
  EXPECT_THAT(framed(R"({"tokenizer_class": "XLMRobertaTokenizer"})"), ElementsAre(0, 4, 2));
  WriteFile(folder.path() / "tokenizer_config.json", R"({"tokenizer_class": "AlbertTokenizer"})");
  const Status status = TextPipeline::Load(folder.path(), false).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("AlbertTokenizer"));
}

TEST(SentencePieceFileTest, NamesWhatIsWrongWithAFile) {
  const auto expect_message = [](const std::string& bytes, StatusCode code,
                                 const std::string& part) {
    const Status status = ParseSentencePiece(bytes, "x.model", {}, false).status();
    EXPECT_EQ(status.code(), code) << part;
    EXPECT_THAT(status.message(), HasSubstr("x.model"));
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  constexpr StatusCode kWrong = StatusCode::kInvalidArgument;
  const std::string whole = SmallUnigramModel().SerializeAsString();
  expect_message(whole.substr(0, whole.size() / 2), kWrong, "or cut off");
  expect_message("{\"model\": 1}", kWrong, "not a SentencePiece model file");
  expect_message("", kWrong, "must have 1..");
  const auto expect_change = [&](auto change, StatusCode code, const std::string& part) {
    Model model = SmallUnigramModel();
    change(model);
    expect_message(model.SerializeAsString(), code, part);
  };
  expect_change([](Model& m) { m.mutable_pieces(3)->set_piece("\xFF"); }, kWrong, "UTF-8");
  expect_change([](Model& m) { m.mutable_pieces(3)->clear_piece(); }, kWrong, "not empty: 3");
  expect_change(
      [](Model& m) { m.mutable_pieces(4)->set_score(std::numeric_limits<float>::quiet_NaN()); },
      kWrong, "scores must be finite: piece 4");
  expect_change([](Model& m) { m.mutable_trainer_spec()->set_unk_id(9); }, kWrong,
                "unk_id must be in 0..8: 9");
  expect_change([](Model& m) { m.mutable_normalizer_spec()->set_precompiled_charsmap("abc"); },
                kWrong, "\"precompiled_charsmap\" is corrupt");
  expect_change([](Model& m) { m.mutable_trainer_spec()->set_model_type(Model::Training::WORD); },
                StatusCode::kUnimplemented, "words or characters");
  expect_change([](Model& m) { m.mutable_normalizer_spec()->set_escape_whitespaces(false); },
                StatusCode::kUnimplemented, "U+2581");
  Model long_piece = SmallBpeModel();
  long_piece.mutable_pieces(3)->set_piece(std::string(513, 'a'));
  expect_message(long_piece.SerializeAsString(), kWrong, "at most 512 bytes");
  const Status bos = ParseSentencePiece(
                         [] {
                           Model model = SmallBpeModel();
                           model.mutable_trainer_spec()->set_bos_id(-1);
                           return model.SerializeAsString();
                         }(),
                         "m", {.adds_bos = true}, false)
                         .status();
  EXPECT_THAT(bos.message(), HasSubstr("bos_id must be in 0..10: -1"));
}

TEST(SentencePieceFileTest, RefusesAFileThatIsTooLarge) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "spiece.model";
  WriteFile(path, "x");
  std::filesystem::resize_file(path, kMaxSentencePieceBytes + 1);  // a hole: takes no room
  const Status status = ReadTokenizerFolder(folder.path(), false).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("file is too large"));
}

TEST(SentencePieceFileTest, GivesT5TheSameIdsFromEitherOfItsFiles) {
  REQUIRE_TEST_DATA("tokenizers/t5-small/spiece.model");
  REQUIRE_TEST_DATA("texts/udhr/udhr.jsonl");
  const testing::TemporaryFolder folder;
  std::filesystem::copy_file(testing::TestDataPath("tokenizers/t5-small/spiece.model"),
                             folder.path() / "spiece.model");
  WriteFile(folder.path() / "tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  const TokenizerFile ours = ReadTokenizerFolder(folder.path(), false).value();
  const TokenizerFile json =
      ReadTokenizerFolder(testing::TestDataPath("tokenizers/t5-small"), false).value();
  EXPECT_EQ(ours.tokenizer->vocabulary_size(), json.tokenizer->vocabulary_size());
  std::ifstream in(testing::TestDataPath("texts/udhr/udhr.jsonl"));
  size_t num_texts = 0;
  for (std::string line; std::getline(in, line); ++num_texts) {
    const JsonDocument document = JsonDocument::Parse(line, "udhr").value();
    const std::string_view text = document.root()["text"].get_string().value();
    EXPECT_EQ(Ids(*ours.tokenizer, text), Ids(*json.tokenizer, text)) << line.substr(0, 40);
  }
  EXPECT_GT(num_texts, 300U);
}

}  // namespace
}  // namespace bouquet::text
