// A tokenizer on one thread, driven over standard input: ./dev bench tokenizers has it take turns
// with the reference library on the same texts.
//
//   tokenizer_timing FOLDER TEXTS LOADS
//
// FOLDER holds tokenizer files, TEXTS one JSON string a line. Loads the tokenizer LOADS times and
// prints {"load_ms": [...]}; then answers each line of standard input, "all" or the index of a
// text, with {"seconds": time of encoding, "ids": number of ids}.
#include <charconv>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "text/encode_scratch.h"
#include "text/tokenizer_file.h"

namespace bouquet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

Result<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(fmt::format("cannot be read: {}", path));
  }
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) {
    ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(line, path));
    std::string_view text;
    if (document.root().get_string().get(text) != simdjson::SUCCESS) {
      return InvalidArgument(fmt::format("{}: each line must be a JSON string", path));
    }
    texts.emplace_back(text);
  }
  return texts;
}

Result<size_t> ParseNumber(std::string_view text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument(fmt::format("must be a number: \"{}\"", text));
  }
  return number;
}

Status Answer(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  text::EncodeScratch scratch;
  std::vector<int32_t> ids;
  for (std::string line; std::getline(std::cin, line);) {
    std::span<const std::string> asked(texts);
    if (line != "all") {
      ASSIGN_OR_RETURN(const size_t index, ParseNumber(line));
      if (index >= texts.size()) {
        return OutOfRange(fmt::format("there are {} texts: {}", texts.size(), index));
      }
      asked = asked.subspan(index, 1);
    }
    size_t num_ids = 0;
    const auto start = SteadyClock::now();
    for (const std::string& text : asked) {
      ids.clear();
      CHECK(tokenizer.Encode(text, {}, scratch, ids).ok());
      num_ids += ids.size();
    }
    std::cout << fmt::format("{{\"seconds\": {:.9f}, \"ids\": {}}}\n", SecondsSince(start), num_ids)
              << std::flush;
  }
  return {};
}

Status Run(std::span<char* const> arguments) {
  RETURN_IF_ERROR(StartLogging("warning", "text"));
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ReadTexts(arguments[1]));
  ASSIGN_OR_RETURN(const size_t num_loads, ParseNumber(arguments[2]));
  text::TokenizerFile file;
  std::vector<double> load_ms;
  for (size_t i = 0; i < num_loads || file.tokenizer == nullptr; ++i) {
    file = {};
    const auto start = SteadyClock::now();
    ASSIGN_OR_RETURN(file, text::ReadTokenizerFolder(arguments[0], /*lowercase_first=*/false));
    load_ms.push_back(1e3 * SecondsSince(start));
  }
  std::cout << fmt::format("{{\"load_ms\": [{:.2f}]}}\n", fmt::join(load_ms, ", ")) << std::flush;
  return Answer(*file.tokenizer, texts);
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: tokenizer_timing FOLDER TEXTS LOADS\n";
    return 2;
  }
  const bouquet::Status status =
      bouquet::bench::Run(std::span(argv, static_cast<size_t>(argc)).subspan(1));
  if (!status.ok()) {
    std::cerr << "tokenizer_timing: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
