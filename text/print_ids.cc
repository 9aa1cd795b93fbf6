// Encodes JSON lines: our half of parity.py and generated_strings.py, which compare with the
// reference library.
//
//   print_ids tokenizer.json|FOLDER [--literal] [--spans] < texts.jsonl > ids.txt
//   print_ids tokenizer.json|FOLDER --decode [--skip-special] < ids.jsonl > texts.hex
//   print_ids tokenizer.json|FOLDER --framed [MAX_TOKENS STRATEGY SIDE] < texts.jsonl > ids.txt
//
// Prints the ids of a text without special tokens as one line of numbers; with --spans or --framed
// then, each behind a "|", the begins and ends of their spans in characters. --framed takes a text
// or a pair of texts a line, adds special tokens, cuts, and prints types and special mask as well.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "text/encode_scratch.h"
#include "text/text_pipeline.h"
#include "text/tokenizer_file.h"

namespace {

using bouquet::Result;
using bouquet::text::ByteSpan;
using bouquet::text::EncodeScratch;
using bouquet::text::PipelineOptions;
using bouquet::text::TextPipeline;
using bouquet::text::TokenSequence;
using simdjson::dom::element;

template <class Numbers>
void Print(const Numbers& numbers, std::string& out) {
  for (const auto number : numbers) {
    out += std::to_string(number);
    out += ' ';
  }
}

void PrintSpans(std::string_view text, const std::vector<ByteSpan>& spans, std::string& out) {
  out += "| ";
  for (const auto& [begin, end] : bouquet::text::CountedInCharacters(text, spans)) {
    fmt::format_to(std::back_inserter(out), "{} {} ", begin, end);
  }
}

/// Calls `print(value, out)` for each line.
template <class Print>
int ForEachLine(Print print) {
  simdjson::dom::parser parser;
  std::string out;
  for (std::string line; std::getline(std::cin, line);) {
    out.clear();
    element value;
    if (parser.parse(line).get(value) != simdjson::SUCCESS || !print(value, out)) {
      std::fprintf(stderr, "not what was expected: %s\n", line.c_str());
      return 1;
    }
    out += '\n';
    std::cout << out;
  }
  return 0;
}

Result<bouquet::text::TokenizerFile> Load(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    return bouquet::text::ReadTokenizerFolder(path, false);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return bouquet::text::ParseTokenizerJson(json, path, false);
}

int PrintIds(const std::string& path, bool literal, bool with_spans) {
  const auto loaded = Load(path);
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.status().ToString().c_str());
    return 1;
  }
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  bouquet::text::TokenSpans spans;
  return ForEachLine([&](element value, std::string& out) {
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) {
      return false;
    }
    ids.clear();
    const bouquet::text::Tokenizer& tokenizer = *loaded.value().tokenizer;
    const bouquet::text::EncodeOptions options = {.parse_special = !literal};
    const bouquet::Status status =
        with_spans ? tokenizer.EncodeWithSpans(text, options, scratch, ids, spans)
                   : tokenizer.Encode(text, options, scratch, ids);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return false;
    }
    Print(ids, out);
    if (with_spans) {
      PrintSpans(text, spans.spans, out);
    }
    return true;
  });
}

/// Lists of ids → texts, their bytes in hexadecimal.
int PrintDecoded(const std::string& path, bool skip_special_tokens) {
  const auto loaded = Load(path);
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.status().ToString().c_str());
    return 1;
  }
  return ForEachLine([&](element value, std::string& out) {
    simdjson::dom::array numbers;
    if (value.get_array().get(numbers) != simdjson::SUCCESS) {
      return false;
    }
    std::vector<int32_t> ids;
    for (const element number : numbers) {
      ids.push_back(static_cast<int32_t>(number.get_int64().value()));
    }
    const Result<std::string> text =
        loaded.value().tokenizer->Decode(ids, {.skip_special_tokens = skip_special_tokens});
    if (!text.ok()) {
      std::fprintf(stderr, "%s\n", text.status().ToString().c_str());
      return false;
    }
    for (const char c : text.value()) {
      fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(c));
    }
    return true;
  });
}

void PrintSequence(const TokenSequence& sequence, std::string_view first, std::string_view second,
                   std::string& out) {
  Print(sequence.ids, out);
  // A span of a pair is of the text that its token is of: the first's come first here.
  out += "| ";
  std::vector<uint8_t> types = sequence.type_ids;
  types.resize(sequence.ids.size(), 0);
  Print(types, out);
  out += "| ";
  Print(sequence.special_mask, out);
  PrintSpans(first, sequence.spans, out);
  PrintSpans(second, sequence.spans, out);
}

int PrintFramed(const std::string& path, const PipelineOptions& options) {
  const auto pipeline = TextPipeline::Load(std::filesystem::is_directory(path)
                                               ? std::filesystem::path(path)
                                               : std::filesystem::path(path).parent_path(),
                                           false);
  if (!pipeline.ok()) {
    std::fprintf(stderr, "%s\n", pipeline.status().ToString().c_str());
    return 1;
  }
  EncodeScratch scratch;
  return ForEachLine([&](element value, std::string& out) {
    std::string_view first;
    std::string_view second;
    const bool is_pair = value.is_array();
    if (is_pair ? (value.at(0).get_string().get(first) != simdjson::SUCCESS ||
                   value.at(1).get_string().get(second) != simdjson::SUCCESS)
                : value.get_string().get(first) != simdjson::SUCCESS) {
      return false;
    }
    const Result<TokenSequence> sequence =
        is_pair ? pipeline.value()->EncodePair(first, second, options, scratch)
                : pipeline.value()->Encode(first, options, scratch);
    if (sequence.ok()) {
      PrintSequence(sequence.value(), first, second, out);
    } else {
      out = "error";
    }
    return true;
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    std::fprintf(stderr,
                 "usage: print_ids tokenizer.json|FOLDER [--literal] [--spans] < texts.jsonl\n"
                 "       print_ids tokenizer.json|FOLDER --framed [MAX_TOKENS STRATEGY SIDE]\n");
    return 2;
  }
  // Warnings about a file would stand between the numbers.
  if (!bouquet::StartLogging("off", "text").ok()) {
    return 1;
  }
  const auto has = [&](std::string_view flag) {
    return std::find(arguments.begin(), arguments.end(), flag) != arguments.end();
  };
  if (has("--decode")) {
    return PrintDecoded(arguments[0], has("--skip-special"));
  }
  if (!has("--framed")) {
    return PrintIds(arguments[0], has("--literal"), has("--spans"));
  }
  using bouquet::text::PairTruncation;
  PipelineOptions options = {.with_spans = true};
  if (arguments.size() > 2) {
    options.length = {.over_length = bouquet::text::OverLength::kTruncate,
                      .side = has("left") ? bouquet::text::TruncationSide::kLeft
                                          : bouquet::text::TruncationSide::kRight,
                      .max_tokens = std::stoi(arguments[2]),
                      .pair = has("only_first")    ? PairTruncation::kOnlyFirst
                              : has("only_second") ? PairTruncation::kOnlySecond
                                                   : PairTruncation::kLongestFirst};
  }
  return PrintFramed(arguments[0], options);
}
