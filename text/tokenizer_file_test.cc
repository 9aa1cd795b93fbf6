#include "text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/test_data.h"
#include "text/encode_scratch.h"
#include "text/small_tokenizer.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSmallMerges = R"(["a b", "Ġ ab", "Ã ©"])";

Status ParseError(const std::string& json) {
  return ParseTokenizerJson(json, "tokenizer.json", false).status();
}

std::vector<int32_t> Ids(const TokenizerFile& file, std::string_view text) {
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  EXPECT_TRUE(file.tokenizer->Encode(text, {}, scratch, ids).ok());
  return ids;
}

TEST(TokenizerFileTest, InfersWordPieceInFilesWithoutModelType) {
  const auto file =
      ParseTokenizerJson(SmallTokenizerWith("\"type\": \"WordPiece\", \"unk", "\"unk"), "t", false);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_THAT(Ids(file.value(), "bad face"), ElementsAre(30, 34));
}

TEST(TokenizerFileTest, RefusesOtherKindsByName) {
  const auto expect_kind = [](const std::string& model, const std::string& kind) {
    const Status status = ParseError("{\"model\": " + model + "}");
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), HasSubstr("takes token ids: " + kind));
  };
  expect_kind(R"({"type": "Other", "vocab": [["a", -1.0]], "unk_id": 0})", "Other");
}

TEST(TokenizerFileTest, ReadsWordLevelWithAndWithoutModelType) {
  for (const char* type : {"", R"("type": "WordLevel", )"}) {
    const std::string model = std::string(type) + R"("vocab": {"a": 0, "b": 1}, "unk_token": "a"})";
    const auto file = ParseTokenizerJson(
        R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {)" + model + "}", "t", false);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_THAT(Ids(file.value(), "b c bb"), ElementsAre(1, 0, 0));
  }
  const Status status = ParseError(R"({"model": {"vocab": {"a": 0}, "unk_token": "b"}})");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"unk_token\" is not in the vocabulary: \"b\""));
}

TEST(TokenizerFileTest, ReadsByteLevelBpeWithMergesAsStringsOrPairs) {
  for (const char* merges : {kSmallMerges, R"([["a", "b"], ["Ġ", "ab"], ["Ã", "©"]])"}) {
    const auto file = ParseTokenizerJson(SmallBpeWith(kSmallMerges, merges), "t", false);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_THAT(Ids(file.value(), "ab ab11"), ElementsAre(6, 7, 3, 3));
    EXPECT_THAT(Ids(file.value(), "e\u0301"), ElementsAre(8));  // NFC first
    EXPECT_EQ(file->tokenizer->Piece(7), "Ġab");
  }
}

TEST(TokenizerFileTest, NamesWhatIsWrongWithABpeModel) {
  const auto expect_message = [](const std::string& json, StatusCode code,
                                 const std::string& part) {
    const Status status = ParseError(json);
    EXPECT_EQ(status.code(), code) << part;
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  constexpr StatusCode kWrong = StatusCode::kInvalidArgument;
  expect_message(SmallBpeWith(kSmallMerges, R"(["a b", "a"])"), kWrong,
                 "\"merges\"[1] must be two tokens");
  expect_message(SmallBpeWith(kSmallMerges, R"(["a b c"])"), kWrong,
                 "\"merges\"[0] must be two tokens");
  expect_message(SmallBpeWith(kSmallMerges, R"([["a", "b", "c"]])"), kWrong,
                 "\"merges\"[0] must be two tokens");
  expect_message(SmallBpeWith(kSmallMerges, R"([[1, 2]])"), kWrong,
                 "\"merges\"[0] must be two tokens");
  expect_message(SmallBpeWith(kSmallMerges, R"({})"), kWrong, "\"merges\" must be an array");
  for (const auto& [merges, missing] :
       {std::pair(R"(["a b", "b b"])", "bb"), std::pair(R"(["a b", "ab x"])", "x"),
        std::pair(R"(["a b", ["y", "b"]])", "y")}) {
    expect_message(
        SmallBpeWith(kSmallMerges, merges), kWrong,
        std::string("\"model\": \"merges\"[1]: not in the vocabulary: \"") + missing + '"');
  }
  expect_message(SmallBpeWith("\"unk_token\": null", "\"unk_token\": \"<u>\""), kWrong, "<u>");
  constexpr StatusCode kNotServed = StatusCode::kUnimplemented;
  expect_message(SmallBpeWith("\"dropout\": null", "\"dropout\": 0.1"), kNotServed, "dropout");
  expect_message(SmallBpeWith("\"end_of_word_suffix\": \"\"", "\"end_of_word_suffix\": \"w\""),
                 kNotServed, "end_of_word_suffix");
  expect_message(SmallBpeWith("(?i:'s", "(?~'s"), kNotServed, "not served: (?~'");
  expect_message(SmallBpeWith("(?i:'s", "(?i:('s"), kWrong, "mistake: end pattern with unmatched");
  expect_message(SmallTokenizerWith("{\"type\": \"BertPreTokenizer\"}",
                                    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"),
                 kNotServed, "ByteLevel pre-tokenizer is served with BPE only");
}

TEST(TokenizerFileTest, ReadsEveryKindOfTheTestData) {
  REQUIRE_TEST_DATA("tokenizers/roberta-base/vocab.json");
  const std::pair<const char*, int32_t> folders[] = {
      {"bert-uncased", 30522}, {"mbert-uncased", 105879},
      {"qwen3", 151669},       {"xlm-roberta", 250002},
      {"t5-small", 32100},     {"mistral-spm", 32000},
      {"roberta-base", 50265}, {"olmo-modernbert-vocab", 50280}};
  for (const auto& [folder, vocabulary_size] : folders) {
    const Result<TokenizerFile> file =
        ReadTokenizerFolder(testing::TestDataPath(std::string("tokenizers/") + folder), false);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(file.value().tokenizer->vocabulary_size(), vocabulary_size) << folder;
  }
}

TEST(TokenizerFileTest, RefusesStagesThatAreNotServedByName) {
  const auto expect_named = [](std::string_view passage, std::string_view replacement,
                               const std::string& name) {
    const Status status = ParseError(SmallTokenizerWith(passage, replacement));
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << name;
    EXPECT_THAT(status.message(), HasSubstr(name));
  };
  expect_named("\"type\": \"BertNormalizer\"", "\"type\": \"Other\"",
               "normalizer is not served: Other");
  expect_named("\"type\": \"BertNormalizer\"", "\"type\": \"Prepend\", \"prepend\": \"\"",
               "Prepend with an empty \"prepend\"");
  expect_named("\"type\": \"BertNormalizer\"",
               "\"type\": \"Replace\", \"content\": \"\", \"pattern\": {\"Regex\": \"(?x)a\"}",
               "group of this kind is not served: (?x)");
  expect_named("\"type\": \"BertPreTokenizer\"", "\"type\": \"Other\"",
               "pre-tokenizer is not served: Other");
  expect_named("\"type\": \"BertPreTokenizer\"",
               "\"type\": \"Split\", \"invert\": false, \"behavior\": \"Removed\", \"pattern\": "
               "{\"Regex\": \"\\\\X\"}",
               "this escape is not served: \\X");
  expect_named("\"type\": \"BertPreTokenizer\"", "\"type\": \"UnicodeScripts\"",
               "pre-tokenizer is not served: UnicodeScripts");
  expect_named("\"type\": \"TemplateProcessing\"", "\"type\": \"Other\"",
               "post-processor is not served: Other");
  expect_named("\"version\": \"1.0\"", "\"version\": \"2.0\"", "2.0");
}

TEST(TokenizerFileTest, ANormalizerThatMakesTooMuchOfATextIsAnErrorOfThatText) {
  for (const char* pattern : {R"({"String": "q"})", R"({"Regex": "[q]"})"}) {
    std::string stages;
    for (int i = 0; i < 60; ++i) {
      stages += std::string(i > 0 ? "," : "") +
                R"({"type": "Replace", "content": "qq", "pattern": )" + pattern + "}";
    }
    const auto file = ParseTokenizerJson(
        SmallTokenizerWith("{\"type\": \"BertNormalizer\"",
                           R"({"type": "Sequence", "normalizers": [)" + stages + "]"),
        "t", false);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EncodeScratch scratch;
    std::vector<int32_t> ids;
    TokenSpans spans;
    const Status status = file->tokenizer->Encode("bqd", {}, scratch, ids);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("too much of this text: more than 65536 bytes"));
    EXPECT_FALSE(file->tokenizer->EncodeWithSpans("bqd", {}, scratch, ids, spans).ok());
    EXPECT_TRUE(file->tokenizer->Encode("bed", {}, scratch, ids).ok());
  }
  // At load it is the added token "Jade" that is named.
  std::string doublings = R"({"type": "Replace", "content": "JJ", "pattern": {"String": "J"}})";
  for (int i = 0; i < 5; ++i) {
    doublings += "," + doublings;
  }
  EXPECT_THAT(
      ParseError(SmallTokenizerWith("{\"type\": \"BertNormalizer\"",
                                    R"({"type": "Sequence", "normalizers": [)" + doublings + "]"))
          .message(),
      HasSubstr("an added token cannot be normalized: id "));
}

TEST(TokenizerFileTest, NamesWhatIsWrongWithAUnigramModelAndItsStages) {
  const auto expect_message = [](std::string_view passage, std::string_view replacement,
                                 StatusCode code, const std::string& part) {
    const Status status = ParseError(SmallUnigramWith(passage, replacement));
    EXPECT_EQ(status.code(), code) << part;
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  constexpr StatusCode kWrong = StatusCode::kInvalidArgument;
  expect_message("\"unk_id\": 0", "\"unk_id\": 99", kWrong,
                 "\"unk_id\" is not in the vocabulary: 99");
  expect_message("\"unk_id\": 0", "\"unk_id\": -1", kWrong, "unk_id");
  expect_message("\"unk_id\": 0", "\"unk_id\": null", StatusCode::kUnimplemented,
                 "without \"unk_id\"");
  for (const char* entry : {"[]", "[\"<unk>\"]", "[\"<unk>\", \"0\"]", "[\"<unk>\", 0, 0]", "7"}) {
    expect_message("[\"<unk>\", 0.0]", entry, kWrong, "\"vocab\"[0] must be a pair");
  }
  expect_message("\"vocab\": [", "\"vocab\": {}, \"other\": [", kWrong,
                 "\"vocab\" must be an array");
  expect_message("\"replacement\": \"▁\"", "\"replacement\": \"▁▁\"", kWrong,
                 "must be one character");
  expect_message("\"replacement\": \"▁\"", "\"replacement\": \"\"", kWrong,
                 "must be one character");
  expect_message("\"always\"", "\"sometimes\"", kWrong, "always, first or never");
  expect_message("\"prepend_scheme\": \"always\"", "\"add_prefix_space\": false", kWrong,
                 "\"prepend_scheme\" is not never");
  expect_message("{\"type\": \"NFKC\"}", R"({"type": "Precompiled", "precompiled_charsmap": "A"})",
                 kWrong, "not base64");
  expect_message("{\"type\": \"NFKC\"}",
                 R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})", kWrong,
                 "\"precompiled_charsmap\" is corrupt");
}

TEST(TokenizerFileTest, ReadsOldUnigramFilesWithoutModelType) {
  for (const bool old : {false, true}) {
    std::string json(kSmallUnigramJson);
    if (old) {
      json = Replaced(json, "\"type\": \"Unigram\", ", "");
      json = Replaced(json, "\"prepend_scheme\": \"always\", \"split\": true",
                      "\"str_rep\": \"▁\", \"add_prefix_space\": true");
    }
    const auto file = ParseTokenizerJson(json, "t", false);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_THAT(Ids(file.value(), "ab  a?"), ElementsAre(5, 2, 4, 0));
    EXPECT_EQ(file->tokenizer->Piece(5), "▁ab");
  }
}

TEST(TokenizerFileTest, NamesTheKeyOfWhatIsWrong) {
  const auto expect_message = [](std::string_view passage, std::string_view replacement,
                                 const std::string& part) {
    const Status status = ParseError(SmallTokenizerWith(passage, replacement));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << part;
    EXPECT_THAT(status.message(), HasSubstr("tokenizer.json"));
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  expect_message("\"model\":", "\"modell\":", "\"model\" is missing");
  expect_message("\"vocab\":", "\"vocabulary\":", "\"vocab\" is missing");
  expect_message("\"[PAD]\": 0,", "\"[PAD]\": -1,", "[PAD]");
  expect_message("\"[PAD]\": 0,", "\"[PAD]\": 4194304,", "0..4194303");
  expect_message("\"[PAD]\": 0,", "\"[PAD]\": \"0\",", "ids must be integers");
  expect_message("\"[UNK]\": 1,", "", "\"unk_token\" is not in the vocabulary");
  expect_message("\"max_input_chars_per_word\": 100", "\"max_input_chars_per_word\": -1",
                 "max_input_chars_per_word");
  expect_message("\"clean_text\": true, ", "", "\"clean_text\" is missing");
  expect_message("\"single_word\": false, ", "", "\"single_word\" is missing");
  expect_message("\"ids\": [2]", "\"ids\": [\"x\"]", "special_tokens");
  expect_message("{\"id\": \"A\", \"type_id\": 0}", "{\"id\": \"B\", \"type_id\": 0}", "single");
  expect_message("{\"id\": \"A\", \"type_id\": 0}", "{\"id\": \"A\", \"type_id\": 256}", "type_id");
  expect_message("\"added_tokens\": [", "\"added_tokens\": 3, \"x\": [", "added_tokens");
  EXPECT_EQ(ParseError("{").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseError("[]").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseError("").code(), StatusCode::kInvalidArgument);
}

TEST(TokenizerFileTest, RefusesAnAddedTokenThatNormalizesToNothing) {
  const Status status =
      ParseError(SmallTokenizerWith("\"content\": \"Jade\"", "\"content\": \"\\u0001\""));
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.field(), "added_tokens");
}

TEST(TokenizerFileTest, GivesAddedTokensTheIdsOfTheReference) {
  // Not the stated id: that of the vocabulary, or the next one after it.
  const auto file = ParseTokenizerJson(
      SmallTokenizerWith("\"id\": 35, \"content\": \"Jade\"", "\"id\": 77, \"content\": \"Jade\""),
      "t", false);
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(Ids(file.value(), "jade"), ElementsAre(35));
}

// The ids are the reference's.
TEST(TokenizerFileTest, OfAddedTokensWithOneIdTheLastIsFound) {
  constexpr std::string_view kAdded =
      R"({"id": %, "content": "%", "special": false, "normalized": false, "single_word": false,
          "lstrip": false, "rstrip": false})";
  const auto ids_of = [&](std::string_view first, std::string_view second) {
    std::string added;
    for (const std::string_view content : {first, second}) {
      added += added.empty() ? "" : ", ";
      added += Replaced(Replaced(kAdded, "%", content == "b" ? "2" : "5"), "%", content);
    }
    std::string json = SmallBpeWith("\"added_tokens\": []", "\"added_tokens\": [" + added + "]");
    json = Replaced(json, R"("b": 1, "Ġ": 2, "1": 3, "Ã": 4, "©": 5, "ab": 6, "Ġab": 7, "Ã©": 8)",
                    R"("b": 2)");  // so that "x" gets the id 2 as well
    return Ids(ParseTokenizerJson(Replaced(json, kSmallMerges, "[]"), "t", false).value(), "axb");
  };
  EXPECT_THAT(ids_of("x", "b"), ElementsAre(0, 2));
  EXPECT_THAT(ids_of("b", "x"), ElementsAre(0, 2, 2));
}

TEST(TokenizerFileTest, NamesTheFilesLookedForInAFolderWithoutTokenizer) {
  const testing::TemporaryFolder folder;
  const Status status = ReadTokenizerFolder(folder.path(), false).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("looked for tokenizer.json, vocab.txt, a SentencePiece"));
}

TEST(TokenizerFileTest, RefusesFilesOverTheSizeLimitWithoutReadingThem) {
  constexpr uintmax_t kTooLarge = 300'000'000;
  const std::vector<std::vector<const char*>> folders = {
      {"tokenizer.json"},
      {"vocab.txt"},
      {"spiece.model"},
      {"vocab.json", "merges.txt"},
      {"merges.txt", "vocab.json"},
      {"special_tokens_map.json", "vocab.json", "merges.txt"},
      {"config.json", "vocab.json", "merges.txt"},
      {"tokenizer_config.json", "spiece.model"},
      {"tokenizer_config.json", "vocab.txt"}};
  for (const auto& names : folders) {
    const testing::TemporaryFolder folder;
    for (const char* name : names) {
      WriteFile(folder.path() / name, "{}");
    }
    std::filesystem::resize_file(folder.path() / names[0], kTooLarge);  // sparse
    const Status status = ReadTokenizerFolder(folder.path(), false).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << names[0];
    EXPECT_THAT(status.message(),
                HasSubstr((folder.path() / names[0]).string() + ": 300000000 bytes, limit "));
  }
}

TEST(TokenizerFileTest, NamesLargeFilesOfJunk) {
  const std::string junk(100'000'000, 'x');
  const std::pair<const char*, const char*> names[] = {
      {"tokenizer.json", "not valid JSON"},
      {"vocab.txt", "special token is not in the vocabulary: \"[UNK]\""},
      {"spiece.model", "must have 1..2097152 pieces: 0"}};
  for (const auto& [name, message] : names) {
    const testing::TemporaryFolder folder;
    WriteFile(folder.path() / name, junk);
    const Status status = ReadTokenizerFolder(folder.path(), false).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr((folder.path() / name).string()));
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

class VocabularyTextTest : public ::testing::Test {
 protected:
  VocabularyTextTest() {
    WriteFile(folder_.path() / "vocab.txt",
              "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nbad\r\nface\n##d\nB\n##é\n中\nbad\n##e\nb");
  }
  Result<TokenizerFile> Read() const { return ReadTokenizerFolder(folder_.path(), false); }
  void WriteConfig(std::string_view json) const {
    WriteFile(folder_.path() / "tokenizer_config.json", json);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(VocabularyTextTest, MakesBertsTokenizerOfVocabTxtAlone) {
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  // Of a token on two lines the last counts; lines may end in CR LF.
  EXPECT_THAT(Ids(file.value(), "BAD faced 中[MASK]bé"), ElementsAre(11, 6, 7, 10, 4, 13, 12));
  EXPECT_EQ(file.value().post_processor.single.num_special_tokens(), 2);
}

TEST_F(VocabularyTextTest, FollowsTokenizerConfig) {
  WriteConfig(R"({"do_lower_case": false, "tokenizer_class": "BertTokenizer",
                  "unk_token": {"content": "[UNK]"}, "model_max_length": 512,
                  "added_tokens_decoder": {"13": {"content": "<new>", "special": false}}})");
  WriteFile(folder_.path() / "vocab.txt",
            "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nbad\r\nface\n##d\nB\n##é\n中\n##e\nb\n");
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_THAT(Ids(file.value(), "Bé<new>face"), ElementsAre(8, 9, 13, 6));
}

TEST_F(VocabularyTextTest, RefusesWhatItCannotRead) {
  WriteConfig(R"({"tokenizer_class": "XLMRobertaTokenizer"})");
  EXPECT_EQ(Read().code(), StatusCode::kUnimplemented);
  WriteConfig(R"({"do_basic_tokenize": false})");
  EXPECT_EQ(Read().code(), StatusCode::kUnimplemented);
  WriteConfig(R"({"cls_token": "<s>"})");
  EXPECT_THAT(Read().status().message(), HasSubstr("not in the vocabulary: \"<s>\""));
  WriteConfig(R"({"added_tokens_decoder": {"x": {"content": "y"}}})");
  EXPECT_EQ(Read().code(), StatusCode::kInvalidArgument);
  WriteConfig("{");
  EXPECT_EQ(Read().code(), StatusCode::kInvalidArgument);
  WriteConfig("{}");
  WriteFile(folder_.path() / "vocab.txt", "[UNK]\n\xFF");
  EXPECT_THAT(Read().status().message(), HasSubstr("not valid UTF-8: byte offset 6"));
}

TEST(VocabularyTextDemoTest, GivesTheIdsOfTokenizerJsonForTheDemoModel) {
  REQUIRE_DEMO_MODEL();
  const testing::TemporaryFolder folder;
  for (const char* name : {"vocab.txt", "tokenizer_config.json"}) {
    std::filesystem::copy(testing::DemoModelPath() / name, folder.path() / name);
  }
  const auto from_text = ReadTokenizerFolder(folder.path(), false);
  const auto from_json = ReadTokenizerFolder(testing::DemoModelPath(), false);
  ASSERT_TRUE(from_text.ok() && from_json.ok());
  const std::string_view text = "Zürich [SEP] is unaffable; 中国 [MASK]ing naïveté \u0130 ##ing";
  EXPECT_EQ(Ids(from_text.value(), text), Ids(from_json.value(), text));
  EXPECT_EQ(from_text.value().tokenizer->vocabulary_size(),
            from_json.value().tokenizer->vocabulary_size());
}

}  // namespace
}  // namespace bouquet::text
