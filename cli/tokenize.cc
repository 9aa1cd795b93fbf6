#include <fmt/compile.h>
#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/line_reader.h"
#include "text/text_pipeline.h"

namespace bouquet::cli {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;

struct TokenizeFlags {
  std::string model;
  std::string input = "-";
  std::string format = "lines";
  std::string field = "text";
  std::string special_tokens_in_text = "parse";
  bool add_special_tokens = true;
  bool pieces = false;
  int32_t max_tokens = 0;
};

bool Flush(std::string& out) {
  const bool written =
      std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  out.clear();
  return written;
}

void AppendTokens(const text::TokenSequence& sequence, const text::Tokenizer* pieces,
                  std::string& out) {
  out += "{\"ids\":[";
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}{}"), i == 0 ? "" : ",",
                   sequence.ids[i]);
  }
  out += ']';
  if (pieces != nullptr) {
    out += ",\"pieces\":[";
    for (size_t i = 0; i < sequence.ids.size(); ++i) {
      out += i == 0 ? "" : ",";
      AppendJsonString(pieces->Piece(sequence.ids[i]), out);
    }
    out += ']';
  }
  out += sequence.truncated() ? ",\"truncated\":true}\n" : "}\n";
}

ExitCode RunTokenize(const TokenizeFlags& flags) {
  const Result<TextFormat> format = ParseTextFormat(flags.format);
  if (!format.ok()) {
    return Fail(ExitCode::kUsage, format.status());
  }
  const auto pipeline = text::TextPipeline::Load(flags.model, /*lowercase_first=*/false);
  if (!pipeline.ok()) {
    return Fail(ExitCode::kModel, pipeline.status());
  }
  Result<LineReader> source = LineReader::Open(flags.input, *format, flags.field);
  if (!source.ok()) {
    return Fail(ExitCode::kInput, source.status());
  }
  text::PipelineOptions options;
  options.add_special_tokens = flags.add_special_tokens;
  options.parse_special = flags.special_tokens_in_text == "parse";
  options.length = {text::OverLength::kTruncate, text::TruncationSide::kRight,
                    flags.max_tokens > 0 ? flags.max_tokens : std::numeric_limits<int32_t>::max()};
  text::EncodeScratch scratch;
  std::string out;
  while (true) {
    const Result<std::optional<InputText>> next = source->Next();
    if (!next.ok()) {
      Flush(out);
      return Fail(ExitCode::kInput, next.status());
    }
    if (!next->has_value()) {
      break;
    }
    const auto sequence = (*pipeline)->Encode((**next).text, options, scratch);
    if (!sequence.ok()) {
      Flush(out);
      return Fail(ExitCode::kInput,
                  InvalidArgument(fmt::format("{}: {}", source->Where((**next).line),
                                              sequence.status().message())));
    }
    AppendTokens(*sequence, flags.pieces ? &(*pipeline)->tokenizer() : nullptr, out);
    // A program that talks to us over a pipe waits for its answer; a file does not.
    if ((out.size() > kFlushBytes || source->WouldWait()) && !Flush(out)) {
      return Fail(ExitCode::kOutput,
                  Status(StatusCode::kPermissionDenied, "cannot write to standard output"));
    }
  }
  return Flush(out) ? ExitCode::kOk
                    : Fail(ExitCode::kOutput, Status(StatusCode::kPermissionDenied,
                                                     "cannot write to standard output"));
}

}  // namespace

RunCommand AddTokenizeCommand(CLI::App& app) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command =
      app.add_subcommand("tokenize", "Texts to token ids: one JSON object with \"ids\" a line");
  command
      ->add_option("MODEL", flags->model, "model folder; one with only tokenizer files is enough")
      ->required();
  command->add_option("FILE", flags->input, "texts; - is standard input")->capture_default_str();
  AddFlag(*command, "--format", flags->format, "lines: a text a line; jsonl: a JSON object a line");
  AddFlag(*command, "--field", flags->field, "with jsonl: the member that holds the text");
  AddFlag(*command, "--add-special-tokens", flags->add_special_tokens,
          "true or false: [CLS] and [SEP] and their like");
  AddFlag(*command, "--special-tokens-in-text", flags->special_tokens_in_text,
          "parse: \"[SEP]\" in a text is the special token, as the reference reads it; literal: it "
          "is text")
      ->check(CLI::IsMember({"parse", "literal"}));
  AddFlag(*command, "--pieces", flags->pieces, "true or false: the tokens' strings too");
  AddFlag(*command, "--max-tokens", flags->max_tokens,
          "cut longer texts and say so; 0 for no limit")
      ->check(CLI::NonNegativeNumber);
  command->footer(
      "Examples:\n"
      "  echo 'hello world' | bouquet tokenize models/all-MiniLM-L6-v2\n"
      "  bouquet tokenize models/all-MiniLM-L6-v2 corpus.jsonl --format jsonl --field body > "
      "ids.jsonl");
  return [flags] { return RunTokenize(*flags); };
}

}  // namespace bouquet::cli
