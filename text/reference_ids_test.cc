// The proof that ids equal the reference library's: its ids of every text of the test data and of
// every code point in several contexts, as hashes that parity.py wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "testing/test_data.h"
#include "text/encode_scratch.h"
#include "text/tokenizer_file.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

namespace fs = std::filesystem;
using OnText = std::function<void(std::string_view)>;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void ForEachString(simdjson::dom::element value, const OnText& on_text) {
  if (std::string_view text; value.get_string().get(text) == simdjson::SUCCESS) {
    on_text(text);
  } else if (simdjson::dom::array array; value.get_array().get(array) == simdjson::SUCCESS) {
    for (const auto item : array) {
      ForEachString(item, on_text);
    }
  } else if (simdjson::dom::object object; value.get_object().get(object) == simdjson::SUCCESS) {
    for (const auto& field : object) {
      ForEachString(field.value, on_text);
    }
  }
}

void ForEachLine(std::string_view text, const OnText& on_line) {
  while (true) {
    const size_t end = text.find('\n');
    on_line(text.substr(0, end));
    if (end == std::string_view::npos) {
      return;
    }
    text.remove_prefix(end + 1);
  }
}

/// As texts_of() in parity.py.
void ForEachText(const fs::path& path, const OnText& on_text) {
  const std::string raw = ReadAll(path);
  simdjson::dom::parser parser;
  const auto parse = [&](std::string_view json) {
    ForEachString(parser.parse(simdjson::padded_string(json)).value(), on_text);
  };
  if (path.extension() == ".json") {
    parse(raw);
  } else if (path.extension() == ".jsonl") {
    ForEachLine(raw, [&](std::string_view line) {
      if (!line.empty()) {
        parse(line);
      }
    });
  } else {
    ForEachLine(raw, on_text);
    on_text(raw);
  }
}

/// As CONTEXTS in parity.py.
void ForEachCodePoint(const std::string& context, const OnText& on_text) {
  const std::pair<std::string, std::string> around = context == "context0"   ? std::pair("", "")
                                                     : context == "context1" ? std::pair("a", "b")
                                                     : context == "context2"
                                                         ? std::pair("e\u0301", "\u0327z")
                                                         : std::pair("A ", " \u1100{}\u11a8");
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) {
      continue;
    }
    std::string character;
    unicode::Append(c, character);
    std::string text = around.first + character + around.second;
    if (const size_t second = text.find("{}"); second != std::string::npos) {
      text.replace(second, 2, character);
    }
    on_text(text);
  }
}

struct Golden {
  std::string tokenizer;
  std::string source;
  uint64_t num_texts = 0;
  uint64_t num_ids = 0;
  uint64_t hash = 0;
};

std::vector<Golden> ReadGoldens(const std::string& tokenizer) {
  std::ifstream in(testing::SourcePath("text/golden/reference_ids.txt"));
  std::vector<Golden> goldens;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Golden golden;
    fields >> golden.tokenizer >> golden.source >> golden.num_texts >> golden.num_ids >> std::hex >>
        golden.hash;
    if (golden.tokenizer == tokenizer) {
      goldens.push_back(golden);
    }
  }
  return goldens;
}

void ExpectReferenceIds(const std::string& name, const fs::path& tokenizer_json) {
  const Result<TokenizerFile> file =
      ParseTokenizerJson(ReadAll(tokenizer_json), tokenizer_json.string(), false);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const std::vector<Golden> goldens = ReadGoldens(name);
  ASSERT_GT(goldens.size(), 30U);
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  for (const Golden& golden : goldens) {
    uint64_t hash = 0xCBF29CE484222325;
    uint64_t num_texts = 0;
    uint64_t num_ids = 0;
    const auto add_text = [&](std::string_view text) {
      constexpr uint64_t kPrime = 0x100000001B3;
      ids.clear();
      ASSERT_TRUE(file.value().tokenizer->Encode(text, {}, scratch, ids).ok());
      for (const int32_t id : ids) {
        hash = (hash ^ static_cast<uint32_t>(id)) * kPrime;
      }
      hash = (hash ^ 0xFFFFFFFF) * kPrime;
      num_ids += ids.size();
      ++num_texts;
    };
    if (golden.source.starts_with("context")) {
      ForEachCodePoint(golden.source, add_text);
    } else {
      ForEachText(testing::TestDataPath("texts/" + golden.source), add_text);
    }
    EXPECT_EQ(num_texts, golden.num_texts) << golden.source;
    EXPECT_EQ(num_ids, golden.num_ids) << golden.source;
    EXPECT_EQ(hash, golden.hash) << golden.source;
  }
}

TEST(ReferenceIdsTest, EqualForBertUncasedOnAllTextsAndCodePoints) {
  REQUIRE_TEST_DATA("tokenizers/bert-uncased/tokenizer.json");
  ExpectReferenceIds("bert-uncased",
                     testing::TestDataPath("tokenizers/bert-uncased/tokenizer.json"));
}

TEST(ReferenceIdsTest, EqualForMultilingualBertOnAllTextsAndCodePoints) {
  REQUIRE_TEST_DATA("tokenizers/mbert-uncased/tokenizer.json");
  ExpectReferenceIds("mbert-uncased",
                     testing::TestDataPath("tokenizers/mbert-uncased/tokenizer.json"));
}

TEST(ReferenceIdsTest, EqualForQwen3OnAllTextsAndCodePoints) {
  REQUIRE_TEST_DATA("tokenizers/qwen3/tokenizer.json");
  ExpectReferenceIds("qwen3", testing::TestDataPath("tokenizers/qwen3/tokenizer.json"));
}

TEST(ReferenceIdsTest, EqualForOlmoOnAllTextsAndCodePoints) {
  REQUIRE_TEST_DATA("tokenizers/olmo-modernbert-vocab/tokenizer.json");
  ExpectReferenceIds("olmo",
                     testing::TestDataPath("tokenizers/olmo-modernbert-vocab/tokenizer.json"));
}

TEST(ReferenceIdsTest, EqualForXlmRobertaOnAllTextsAndCodePoints) {
  REQUIRE_TEST_DATA("tokenizers/xlm-roberta/tokenizer.json");
  ExpectReferenceIds("xlm-roberta", testing::TestDataPath("tokenizers/xlm-roberta/tokenizer.json"));
}

TEST(ReferenceIdsTest, EqualForT5OnAllTextsAndCodePoints) {
  REQUIRE_TEST_DATA("tokenizers/t5-small/tokenizer.json");
  ExpectReferenceIds("t5-small", testing::TestDataPath("tokenizers/t5-small/tokenizer.json"));
}

TEST(ReferenceIdsTest, EqualForTheDemoModelOnAllTextsAndCodePoints) {
  REQUIRE_DEMO_MODEL();
  REQUIRE_TEST_DATA("texts/tatoeba/tatoeba.jsonl");
  ExpectReferenceIds("demo", testing::DemoModelPath() / "tokenizer.json");
}

}  // namespace
}  // namespace bouquet::text
