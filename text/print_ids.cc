// Reads one JSON string a line, prints its ids without special tokens as one line of numbers. The
// other half of parity.py, which compares them with the reference library's.
//
//   print_ids tokenizer.json|FOLDER [--literal] < texts.jsonl > ids.txt
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "base/json.h"
#include "text/encode_scratch.h"
#include "text/tokenizer_file.h"

namespace {

bouquet::Result<bouquet::text::TokenizerFile> Load(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    return bouquet::text::ReadTokenizerFolder(path, false);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return bouquet::text::ParseTokenizerJson(json, path, false);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: print_ids tokenizer.json|FOLDER [--literal] < texts.jsonl\n");
    return 2;
  }
  auto loaded = Load(argv[1]);
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.status().ToString().c_str());
    return 1;
  }
  const bouquet::text::EncodeOptions options = {.parse_special = argc < 3};
  bouquet::text::EncodeScratch scratch;
  std::vector<int32_t> ids;
  simdjson::dom::parser parser;
  std::string out;
  for (std::string line; std::getline(std::cin, line);) {
    std::string_view text;
    if (parser.parse(line).get_string().get(text) != simdjson::SUCCESS) {
      std::fprintf(stderr, "not a JSON string: %s\n", line.c_str());
      return 1;
    }
    ids.clear();
    loaded->tokenizer->Encode(text, options, scratch, ids);
    out.clear();
    for (const int32_t id : ids) {
      out += std::to_string(id);
      out += ' ';
    }
    out += '\n';
    std::cout << out;
  }
  return 0;
}
