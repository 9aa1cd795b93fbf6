#include <fmt/compile.h>
#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "text/text_pipeline.h"
#include "text/token_spans.h"

namespace bouquet::cli {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;
constexpr std::string_view kNoOffsets = "none";
constexpr std::string_view kCharacters = "characters";

struct TokenizeFlags {
  std::string model;
  std::string input = "-";
  std::string format = "lines";
  std::string field = "text";
  std::string pair_field = "text_pair";
  std::string special_tokens_in_text = "parse";
  std::string offsets{kNoOffsets};
  bool add_special_tokens = true;
  bool pieces = false;
  bool count = false;
  bool special = false;
  bool pairs = false;
  bool quiet = false;
  int32_t max_tokens = 0;

  bool wants_offsets() const { return offsets != kNoOffsets; }
};

template <class Items, class AppendItem>
void AppendList(std::string_view name, const Items& items, AppendItem append_item,
                std::string& out) {
  fmt::format_to(std::back_inserter(out), FMT_COMPILE(",\"{}\":["), name);
  bool is_first = true;
  for (const auto& item : items) {
    out += is_first ? "" : ",";
    is_first = false;
    append_item(item);
  }
  out += ']';
}

/// Texts → lines of JSON.
class Tokenization {
 public:
  Tokenization(const TokenizeFlags& flags, const text::TextPipeline& pipeline)
      : flags_(flags), pipeline_(pipeline) {
    options_.add_special_tokens = flags.add_special_tokens;
    options_.parse_special = flags.special_tokens_in_text == "parse";
    options_.with_spans = !flags.count && (flags.wants_offsets() || flags.special);
    options_.length = {
        text::OverLength::kTruncate, text::TruncationSide::kRight,
        flags.max_tokens > 0 ? flags.max_tokens : std::numeric_limits<int32_t>::max()};
  }

  /// Appends a line and returns how many tokens it has. Error: of the pipeline.
  Result<int64_t> Append(const InputText& input, std::string& out) {
    Result<text::TokenSequence> encoded =
        flags_.pairs ? pipeline_.EncodePair(input.text, input.second, options_, scratch_)
                     : pipeline_.Encode(input.text, options_, scratch_);
    if (!encoded.ok()) {
      return encoded.status();
    }
    const auto num_tokens = static_cast<int64_t>(encoded->ids.size());
    if (flags_.count) {
      fmt::format_to(std::back_inserter(out), FMT_COMPILE("{{\"count\":{}"), num_tokens);
    } else {
      AppendTokens(input, *encoded, out);
    }
    out += encoded->truncated() ? ",\"truncated\":true}\n" : "}\n";
    return num_tokens;
  }

 private:
  void AppendTokens(const InputText& input, const text::TokenSequence& sequence,
                    std::string& out) const {
    const auto number = [&out](auto value) {
      fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value);
    };
    const size_t begin = out.size();
    AppendList("ids", sequence.ids, number, out);
    out[begin] = '{';
    if (flags_.pairs) {
      std::vector<uint8_t> types = sequence.type_ids;  // left out where all are 0
      types.resize(sequence.ids.size());
      AppendList("type_ids", types, number, out);
    }
    if (flags_.pieces) {
      AppendList(
          "pieces", sequence.ids,
          [&](int32_t id) { AppendJsonString(pipeline_.tokenizer().Piece(id), out); }, out);
    }
    if (flags_.special) {
      AppendList("special", sequence.special_mask, number, out);
    }
    if (flags_.wants_offsets()) {
      AppendOffsets(input, sequence, out);
    }
  }

  void AppendOffsets(const InputText& input, const text::TokenSequence& sequence,
                     std::string& out) const {
    const auto span = [&out](const auto& one) {
      fmt::format_to(std::back_inserter(out), FMT_COMPILE("[{},{}]"), one.begin, one.end);
    };
    if (flags_.offsets != kCharacters) {
      AppendList("offsets", sequence.spans, span, out);
      return;
    }
    // A token of the second text has its span there.
    const auto middle = sequence.spans.begin() +
                        static_cast<int64_t>(sequence.second_begin.value_or(sequence.ids.size()));
    std::vector<text::CharacterSpan> characters =
        text::CountedInCharacters(input.text, {sequence.spans.begin(), middle});
    const std::vector<text::CharacterSpan> second =
        text::CountedInCharacters(input.second, {middle, sequence.spans.end()});
    characters.insert(characters.end(), second.begin(), second.end());
    AppendList("offsets", characters, span, out);
  }

  const TokenizeFlags& flags_;
  const text::TextPipeline& pipeline_;
  text::PipelineOptions options_;
  text::EncodeScratch scratch_;
};

bool Flush(std::string& out) {
  const bool written =
      std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  out.clear();
  return written;
}

/// How much of the input has been read; negative where its size is not known.
double FractionRead(const LineReader& source) {
  return source.bytes_total() > 0
             ? static_cast<double>(source.bytes_read()) / static_cast<double>(source.bytes_total())
             : -1;
}

ExitCode TokenizeAll(Tokenization& tokenization, LineReader& source, Progress& progress) {
  const Status unwritten(StatusCode::kPermissionDenied, "cannot write to standard output");
  std::string out;
  while (true) {
    const Result<std::optional<InputText>> next = source.Next();
    if (!next.ok()) {
      Flush(out);
      return Fail(ExitCode::kInput, next.status());
    }
    if (!next->has_value()) {
      return Flush(out) ? ExitCode::kOk : Fail(ExitCode::kOutput, unwritten);
    }
    const Result<int64_t> num_tokens = tokenization.Append(**next, out);
    if (!num_tokens.ok()) {
      Flush(out);
      return Fail(ExitCode::kInput,
                  InvalidArgument(fmt::format("{}: {}", source.Where((**next).line),
                                              num_tokens.status().message())));
    }
    progress.Add(1, *num_tokens);
    progress.Draw(FractionRead(source));
    // A program that talks to us over a pipe waits for its answer; a file does not.
    if ((out.size() > kFlushBytes || source.WouldWait()) && !Flush(out)) {
      return Fail(ExitCode::kOutput, unwritten);
    }
  }
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
  Result<LineReader> source =
      LineReader::Open(flags.input, *format, flags.field,
                       flags.pairs ? std::optional(flags.pair_field) : std::nullopt);
  if (!source.ok()) {
    return Fail(ExitCode::kInput, source.status());
  }
  Tokenization tokenization(flags, **pipeline);
  const SystemClock clock;
  // Whoever types texts, or talks over a pipe, sees the answers and needs no progress.
  const bool shows_progress = !flags.quiet && source->bytes_total() > 0;
  Progress progress(clock, shows_progress);
  const ExitCode exit_code = TokenizeAll(tokenization, *source, progress);
  progress.Clear();
  if (exit_code == ExitCode::kOk && shows_progress) {
    fmt::print(stderr, "{}\n", progress.Summary());
  }
  return exit_code;
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
  AddSwitch(*command, "--pairs", flags->pairs,
            "two texts a line, with one tab between them; with jsonl, of --field and --pair-field");
  AddFlag(*command, "--pair-field", flags->pair_field,
          "with jsonl and --pairs: the member that holds the second text");
  AddFlag(*command, "--add-special-tokens", flags->add_special_tokens,
          "true or false: [CLS] and [SEP] and their like");
  AddFlag(*command, "--special-tokens-in-text", flags->special_tokens_in_text,
          "parse: \"[SEP]\" in a text is the special token, as the reference reads it; literal: it "
          "is text")
      ->check(CLI::IsMember({"parse", "literal"}));
  AddFlag(*command, "--pieces", flags->pieces, "true or false: the tokens' strings too");
  AddFlag(*command, "--offsets", flags->offsets,
          "bytes or characters: where in its text each token is, [begin, end]")
      ->check(
          CLI::IsMember({std::string(kNoOffsets), std::string("bytes"), std::string(kCharacters)}));
  AddSwitch(*command, "--special", flags->special,
            "a 1 for each special token that was put around the text, else a 0");
  AddSwitch(*command, "--count", flags->count, "the number of tokens alone");
  AddFlag(*command, "--max-tokens", flags->max_tokens,
          "cut longer texts and say so; 0 for no limit")
      ->check(CLI::NonNegativeNumber);
  AddFlag(*command, "--quiet", flags->quiet, "true: no progress and no closing line");
  command->footer(
      "Examples:\n"
      "  echo 'hello world' | bouquet tokenize models/all-MiniLM-L6-v2\n"
      "  echo 'hello world' | bouquet tokenize models/bge-m3 --offsets characters --special\n"
      "  bouquet tokenize models/bge-m3 corpus.jsonl --format jsonl --count > counts.jsonl\n"
      "  bouquet tokenize models/all-MiniLM-L6-v2 corpus.jsonl --format jsonl --field body > "
      "ids.jsonl");
  return [flags] { return RunTokenize(*flags); };
}

}  // namespace bouquet::cli
