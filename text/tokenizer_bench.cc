// How fast is text turned into ids? One thread, a short query, a text of 514 tokens and whole
// files; "unseen" goes on through the file, so that only the vocabulary is warm. BOUQUET_DATA names
// the unpacked test data, default build/test_data.
//   µs per call, bytes per second; loading: ms per file
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "text/encode_scratch.h"
#include "text/tokenizer_file.h"

namespace bouquet::text {
namespace {

std::string DataPath(const std::string& name) {
  const char* folder = std::getenv("BOUQUET_DATA");
  return std::string(folder != nullptr ? folder : "build/test_data") + "/" + name;
}

TokenizerFile Load(const std::string& tokenizer) {
  return ReadTokenizerFolder(DataPath("tokenizers/" + tokenizer), false).value();
}

/// The "text" of each line of a JSON-lines file.
std::vector<std::string> Texts(const std::string& name) {
  std::ifstream in(DataPath(name));
  std::vector<std::string> texts;
  for (std::string line; std::getline(in, line);) {
    const JsonDocument document = JsonDocument::Parse(line, name).value();
    const JsonObject object = JsonObject::From(document.root(), name).value();
    texts.push_back(object.RequiredString("text").value());
  }
  return texts;
}

void EncodeAll(benchmark::State& state, const std::string& tokenizer, const std::string& name) {
  const TokenizerFile file = Load(tokenizer);
  const std::vector<std::string> texts = Texts(name);
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  int64_t num_bytes = 0;
  for (auto _ : state) {
    for (const std::string& text : texts) {
      ids.clear();
      CHECK(file.tokenizer->Encode(text, {}, scratch, ids).ok());
      benchmark::DoNotOptimize(ids.data());
      num_bytes += static_cast<int64_t>(text.size());
    }
  }
  state.SetBytesProcessed(num_bytes);
}
constexpr const char* kAbstracts = "texts/scifact/corpus.jsonl";
constexpr const char* kLanguages = "texts/udhr/udhr.jsonl";
BENCHMARK_CAPTURE(EncodeAll, bert_english_abstracts, "bert-uncased", kAbstracts);
BENCHMARK_CAPTURE(EncodeAll, bert_languages_388, "bert-uncased", kLanguages);
BENCHMARK_CAPTURE(EncodeAll, qwen3_english_abstracts, "qwen3", kAbstracts);
BENCHMARK_CAPTURE(EncodeAll, qwen3_languages_388, "qwen3", kLanguages);
BENCHMARK_CAPTURE(EncodeAll, olmo_english_abstracts, "olmo-modernbert-vocab", kAbstracts);
BENCHMARK_CAPTURE(EncodeAll, olmo_languages_388, "olmo-modernbert-vocab", kLanguages);
BENCHMARK_CAPTURE(EncodeAll, xlm_roberta_english_abstracts, "xlm-roberta", kAbstracts);
BENCHMARK_CAPTURE(EncodeAll, xlm_roberta_languages_388, "xlm-roberta", kLanguages);
BENCHMARK_CAPTURE(EncodeAll, t5_english_abstracts, "t5-small", kAbstracts);
BENCHMARK_CAPTURE(EncodeAll, mistral_english_abstracts, "mistral-spm", kAbstracts);
BENCHMARK_CAPTURE(EncodeAll, mistral_languages_388, "mistral-spm", kLanguages);

void EncodeQueriesUnseen(benchmark::State& state) {
  const TokenizerFile file = Load("bert-uncased");
  const std::vector<std::string> texts = Texts("texts/scifact/queries.jsonl");
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  size_t next = 0;
  int64_t num_bytes = 0;
  for (auto _ : state) {
    const std::string& text = texts[next++ % texts.size()];
    ids.clear();
    CHECK(file.tokenizer->Encode(text, {}, scratch, ids).ok());
    benchmark::DoNotOptimize(ids.data());
    num_bytes += static_cast<int64_t>(text.size());
  }
  state.SetBytesProcessed(num_bytes);
}
BENCHMARK(EncodeQueriesUnseen);

void Encode512TokensUnseen(benchmark::State& state) {
  const TokenizerFile file = Load("bert-uncased");
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  std::vector<std::string> texts;
  for (const std::string& abstract : Texts("texts/scifact/corpus.jsonl")) {
    // Words are added until the text has 512 tokens; no word's ids depend on the one before.
    int64_t num_tokens = 0;
    size_t end = 0;
    while (end < abstract.size() && num_tokens < 512) {
      const size_t begin = end;
      end = std::min(abstract.find(' ', begin + 1), abstract.size());
      ids.clear();
      CHECK(file.tokenizer->Encode(abstract.substr(begin, end - begin), {}, scratch, ids).ok());
      num_tokens += static_cast<int64_t>(ids.size());
    }
    if (num_tokens == 512) {
      texts.push_back(abstract.substr(0, end));
    }
    if (texts.size() == 100) {
      break;
    }
  }
  size_t next = 0;
  for (auto _ : state) {
    ids.clear();
    CHECK(file.tokenizer->Encode(texts[next++ % texts.size()], {}, scratch, ids).ok());
    benchmark::DoNotOptimize(ids.data());
  }
}
BENCHMARK(Encode512TokensUnseen)->Unit(benchmark::kMicrosecond);

void LoadFolder(benchmark::State& state, const std::string& tokenizer) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Load(tokenizer));
  }
}
BENCHMARK_CAPTURE(LoadFolder, bert, "bert-uncased")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoadFolder, multilingual_bert, "mbert-uncased")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoadFolder, qwen3, "qwen3")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoadFolder, olmo, "olmo-modernbert-vocab")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoadFolder, xlm_roberta, "xlm-roberta")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoadFolder, mistral, "mistral-spm")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bouquet::text
