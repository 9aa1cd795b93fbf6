// Any bytes as vocab.txt, or as vocab.json with merges.txt, each with a tokenizer_config.json or
// without: refused with a message, or a tokenizer that encodes within its vocabulary, knows what
// each token stands for and decodes to UTF-8. The first byte picks files and options; "====" on a
// line of its own ends a file. Does not cover config.json and special_tokens_map.json.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "text/encode_scratch.h"
#include "text/unicode/utf8.h"
#include "text/vocabulary_json.h"
#include "text/vocabulary_text.h"

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTexts[] = {
    "",
    "Bad  [SEP] cabbage, jade [MASK]! 中国 \u0130e\u0301\u0327 각 12",
    "<s>ab  ab <mask></s> It's <|endoftext|>\r\n\t\u2581 ab",
};

/// The functions read folders. One for the whole run, in memory where that can be had: on a disk
/// writing takes most of the time.
class Folder {
 public:
  Folder() : path_(Parent() / ("vocabulary_files_fuzz_" + Suffix())) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const fs::path& path() const { return path_; }
  void Write(const char* name, std::string_view content) const {
    std::ofstream file(path_ / name, std::ios::binary | std::ios::trunc);
    file << content;
    CHECK(file.good());
  }
  void Remove(const char* name) const { fs::remove(path_ / name); }

 private:
  static fs::path Parent() {
    const fs::path memory = "/dev/shm";
    return fs::exists(memory) ? memory : fs::temp_directory_path();
  }
  static std::string Suffix() {
    std::random_device random;
    return std::to_string(random()) + std::to_string(random());
  }
  fs::path path_;
};

/// Takes the next file off the front of `rest`.
std::string_view TakeFile(std::string_view& rest) {
  constexpr std::string_view kEnd = "\n====\n";
  const size_t end = rest.find(kEnd);
  const std::string_view file = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + kEnd.size());
  return file;
}

void CheckTokenizer(const bouquet::text::Tokenizer& tokenizer, bool parse_special) {
  bouquet::text::EncodeScratch scratch;
  for (const std::string_view text : kTexts) {
    std::vector<int32_t> ids;
    std::vector<int32_t> ids_with_spans;
    bouquet::text::TokenSpans spans;
    const bouquet::text::EncodeOptions options = {.parse_special = parse_special};
    CHECK(tokenizer.Encode(text, options, scratch, ids).ok());
    CHECK(tokenizer.EncodeWithSpans(text, options, scratch, ids_with_spans, spans).ok());
    CHECK(ids == ids_with_spans);
    CHECK_EQ(spans.spans.size(), ids.size());
    for (const auto& [begin, end] : spans.spans) {
      CHECK_LE(begin, end);
      CHECK_LE(end, text.size());
    }
    for (const int32_t id : ids) {
      CHECK_GE(id, 0);
      CHECK_LT(id, tokenizer.vocabulary_size());
    }
    const auto decoded = tokenizer.Decode(ids, {});
    CHECK(decoded.ok());
    CHECK(!bouquet::text::unicode::FindInvalidUtf8(decoded.value()).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = bouquet::StartLogging("off", "text").ok();
  CHECK(quiet);
  static const Folder folder;
  if (size == 0) {
    return 0;
  }
  const bool is_json = (data[0] & 1) != 0;
  const bool lowercase_first = (data[0] & 2) != 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  folder.Write(is_json ? "vocab.json" : "vocab.txt", TakeFile(rest));
  if (is_json) {
    folder.Write("merges.txt", TakeFile(rest));
  }
  if (rest.empty()) {
    folder.Remove("tokenizer_config.json");
  } else {
    folder.Write("tokenizer_config.json", rest);
  }
  const auto file = is_json ? bouquet::text::ReadVocabularyJson(folder.path(), lowercase_first)
                            : bouquet::text::ReadVocabularyText(folder.path(), lowercase_first);
  if (!file.ok()) {
    CHECK(!file.status().message().empty());
    return 0;
  }
  CheckTokenizer(*file.value().tokenizer, (data[0] & 4) != 0);
  return 0;
}
