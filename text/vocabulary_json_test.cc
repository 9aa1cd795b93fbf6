#include "text/vocabulary_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/test_data.h"
#include "text/small_tokenizer.h"
#include "text/text_pipeline.h"

namespace bouquet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kVocabulary =
    R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "Ġ": 6, "ab": 7, "Ġab": 8,
        "<mask>": 9})";
constexpr std::string_view kGpt2Vocabulary =
    R"({"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 5, "<|endoftext|>": 4})";

class VocabularyJsonTest : public ::testing::Test {
 protected:
  VocabularyJsonTest() {
    Write("vocab.json", kVocabulary);
    Write("merges.txt", "#version: 0.2\na b\nĠ ab\n");
  }
  void Write(const char* name, std::string_view content) {
    WriteFile(folder_.path() / name, content);
  }
  TokenSequence Encode(std::string_view text) {
    return TextPipeline::Load(folder_.path(), false)
        .value()
        ->Encode(text, {.with_spans = true}, scratch_)
        .value();
  }
  std::string Error() { return TextPipeline::Load(folder_.path(), false).status().ToString(); }

  testing::TemporaryFolder folder_;
  EncodeScratch scratch_;
};

TEST_F(VocabularyJsonTest, IsRobertasByItsSpecialTokens) {
  const TokenSequence sequence = Encode("ab ab <mask>b</s>");
  EXPECT_THAT(sequence.ids, ElementsAre(0, 7, 8, 9, 5, 2, 2));
  EXPECT_THAT(sequence.spans,  // trimmed; the mask took a space along, and lost it
              ElementsAre(ByteSpan{0, 0}, ByteSpan{0, 2}, ByteSpan{3, 5}, ByteSpan{6, 12},
                          ByteSpan{12, 13}, ByteSpan{13, 17}, ByteSpan{0, 0}));
  const auto pipeline = TextPipeline::Load(folder_.path(), false).value();
  EXPECT_THAT(pipeline->EncodePair("a", "b", {}, scratch_).value().ids,
              ElementsAre(0, 4, 2, 2, 5, 2));
  EXPECT_EQ(pipeline->Decode(sequence.ids, {}).value(), "ab abb");
}

TEST_F(VocabularyJsonTest, TakesItsSettingsFromTheConfigurationFiles) {
  Write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizerFast",
      "add_prefix_space": true, "trim_offsets": false, "sep_token": {"content": "<pad>"}})");
  const TokenSequence sequence = Encode("ab ab");
  EXPECT_THAT(sequence.ids, ElementsAre(0, 8, 8, 1));
  EXPECT_THAT(sequence.spans,
              ElementsAre(ByteSpan{0, 0}, ByteSpan{0, 2}, ByteSpan{2, 5}, ByteSpan{0, 0}));
  Write("tokenizer_config.json", "{}");
  Write("special_tokens_map.json", R"({"cls_token": "<unk>"})");
  EXPECT_THAT(Encode("ab").ids, ElementsAre(3, 7, 2));
}

TEST_F(VocabularyJsonTest, IsGpt2sByItsVocabularyItsClassOrItsModelType) {
  Write("vocab.json", kGpt2Vocabulary);
  EXPECT_THAT(Encode("ab<|endoftext|>").ids, ElementsAre(3, 4));
  Write("vocab.json", kVocabulary);
  Write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_THAT(Encode("ab<|endoftext|>").ids, ElementsAre(7, 10));  // gets the next id
  Write("config.json", R"({"model_type": "roberta"})");
  Write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_THAT(Encode("ab").ids, ElementsAre(7));
}

TEST_F(VocabularyJsonTest, NamesTheLineOfAMergeThatIsWrong) {
  Write("merges.txt", "#version: 0.2\na b\n\nab\n");
  EXPECT_THAT(Error(), HasSubstr("merges.txt: line 4 must be two tokens"));
  Write("merges.txt", "a b\na b b\n");
  EXPECT_THAT(Error(), HasSubstr("line 2 must be two tokens"));
  Write("merges.txt", "a b\nb a\n");
  EXPECT_THAT(Error(), HasSubstr("line 2: not in the vocabulary: \"ba\""));
  Write("merges.txt", "a b\na x\n");
  EXPECT_THAT(Error(), HasSubstr("line 2: not in the vocabulary: \"x\""));
  Write("merges.txt", "\xFF b\n");
  EXPECT_THAT(Error(), HasSubstr("not valid UTF-8"));
  Write("merges.txt", "a b\r\nĠ ab\r\n");
  EXPECT_THAT(Encode(" ab").ids, ElementsAre(0, 8, 2));
}

TEST_F(VocabularyJsonTest, RefusesWhatIsNotServedByName) {
  Write("tokenizer_config.json", R"({"tokenizer_class": "BlenderbotTokenizer"})");
  EXPECT_THAT(Error(), HasSubstr("BlenderbotTokenizer"));
  Write("tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_THAT(Error(), HasSubstr("add_bos_token"));
  Write("tokenizer_config.json", R"({"cls_token": "<cls>"})");
  EXPECT_THAT(Error(), HasSubstr("special token is not in the vocabulary: \"<cls>\""));
  Write("tokenizer_config.json", "{}");
  Write("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4})");
  EXPECT_THAT(Error(), HasSubstr("only RoBERTa's and GPT-2's is served"));
  Write("vocab.json", R"({"a": -1})");
  EXPECT_THAT(Error(), HasSubstr("ids must be integers"));
}

TEST_F(VocabularyJsonTest, NeedsBothFiles) {
  std::filesystem::remove(folder_.path() / "merges.txt");
  EXPECT_THAT(Error(), HasSubstr("merges.txt"));
}

}  // namespace
}  // namespace bouquet::text
