#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cli/command.h"
#include "cli/embed_job.h"
#include "cli/engine_flags.h"
#include "cli/line_reader.h"
#include "cli/local_model.h"
#include "cli/progress.h"
#include "cli/row_writer.h"
#include "cli/text_source.h"

namespace bouquet::cli {
namespace {

namespace asio = boost::asio;

struct EmbedFlags {
  std::string model;
  std::string input = "-";
  std::string format = "lines";
  std::string field = "text";
  std::string output = "-";
  std::string over_length = "truncate";
  std::string prompt;
  std::string prompt_name;
  std::string special_tokens_in_text = "parse";
  std::string normalize = "model";
  int32_t dimensions = 0;
  bool quiet = false;
  EngineFlags engine;
};

Result<std::string> ResolvePrompt(const EmbedFlags& flags, const model::Prompts& prompts) {
  if (!flags.prompt.empty() && !flags.prompt_name.empty()) {
    return InvalidArgument("--prompt and --prompt-name cannot go together");
  }
  const std::string name =
      flags.prompt_name.empty() ? prompts.default_name.value_or("") : flags.prompt_name;
  if (!flags.prompt.empty() || name.empty()) {
    return flags.prompt;
  }
  const auto found = prompts.by_name.find(name);
  if (found == prompts.by_name.end()) {
    std::string known;
    for (const auto& [known_name, text] : prompts.by_name) {
      known += (known.empty() ? "" : ", ") + known_name;
    }
    return InvalidArgument(
        fmt::format("--prompt-name is not one of the model's prompts: {}; they are: {}", name,
                    known.empty() ? "none" : known));
  }
  return found->second;
}

Result<EmbedJobOptions> ResolveOptions(const EmbedFlags& flags, const model::ModelFolder& folder) {
  const int32_t width = folder.pipeline.width;
  if (flags.dimensions < 0 || flags.dimensions > width) {
    return InvalidArgument(fmt::format("--dimensions must be 1..{}: {}", width, flags.dimensions));
  }
  EmbedJobOptions options;
  options.output.dimensions = static_cast<uint32_t>(
      flags.dimensions > 0 ? flags.dimensions : folder.truncate_dim.value_or(0));
  options.output.normalize =
      flags.normalize == "model" ? folder.pipeline.ends_normalized : flags.normalize == "true";
  options.over_length =
      flags.over_length == "error" ? text::OverLength::kError : text::OverLength::kTruncate;
  options.parse_special = flags.special_tokens_in_text == "parse";
  ASSIGN_OR_RETURN(options.prompt, ResolvePrompt(flags, folder.prompts));
  return options;
}

/// Runs the job on this thread. nullopt: SIGINT or SIGTERM came first.
std::optional<EmbedJob::Outcome> RunJob(EmbedJob& job, asio::io_context& context) {
  std::optional<EmbedJob::Outcome> outcome;
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&context](const boost::system::error_code& error, int /*signal*/) {
    if (!error) {
      context.stop();
    }
  });
  asio::co_spawn(context, job.Run(),
                 [&](const std::exception_ptr& error, EmbedJob::Outcome result) {
                   outcome = error == nullptr
                                 ? std::move(result)
                                 : EmbedJob::Outcome{ExitCode::kInternal,
                                                     Internal("the embed job ended unexpectedly")};
                   signals.cancel();
                 });
  context.run();
  return outcome;
}

ExitCode RunEmbed(const EmbedFlags& flags) {
  const Result<TextFormat> format = ParseTextFormat(flags.format);
  if (!format.ok()) {
    return Fail(ExitCode::kUsage, format.status());
  }
  const Result<model::ModelFolder> folder = model::ModelFolder::Open(flags.model);
  if (!folder.ok()) {
    return Fail(ExitCode::kModel, folder.status());
  }
  Result<EmbedJobOptions> options = ResolveOptions(flags, *folder);
  if (!options.ok()) {
    return Fail(ExitCode::kUsage, options.status());
  }
  Result<LineReader> reader = LineReader::Open(flags.input, *format, flags.field);
  if (!reader.ok()) {
    return Fail(ExitCode::kInput, reader.status());
  }
  Result<std::unique_ptr<RowWriter>> writer = RowWriter::Open(flags.output);
  if (!writer.ok()) {
    return Fail(
        writer.code() == StatusCode::kInvalidArgument ? ExitCode::kUsage : ExitCode::kOutput,
        writer.status());
  }
  Metrics metrics;
  const SystemClock clock;
  asio::io_context context(1);  // outlives the model: its threads post answers here
  LocalModelOptions local;
  local.engine = flags.engine;
  local.max_queue = std::chrono::hours(24);  // the job bounds what is under way itself
  Result<ivy::TextSource> source = LoadTextSource(*folder);
  if (!source.ok()) {
    return Fail(ExitCode::kModel, source.status());
  }
  const Result<std::unique_ptr<LocalModel>> model =
      LocalModel::Load(*folder, local, metrics, clock);
  if (!model.ok()) {
    return Fail(ExitOfLoading(model.status()), model.status());
  }
  const auto encoder = (*model)->MakeEncoder({}, std::move(source).value());
  if (!encoder.ok()) {
    return Fail(ExitCode::kModel, encoder.status());
  }
  Progress progress(clock, !flags.quiet);
  EmbedJob job(**encoder, *reader, **writer, *std::move(options), progress);
  const std::optional<EmbedJob::Outcome> outcome = RunJob(job, context);
  progress.Clear();
  if (!outcome || outcome->status.code() == StatusCode::kCancelled) {
    return Fail(ExitCode::kInterrupted, Cancelled("interrupted; no output was written"));
  }
  if (outcome->code != ExitCode::kOk) {
    return Fail(outcome->code, outcome->status);
  }
  if (const Status status = (*writer)->Finish(); !status.ok()) {
    return Fail(ExitCode::kOutput, status);
  }
  if (!flags.quiet) {
    LogInfo("{}{}", progress.Summary(),
            job.truncated() == 0
                ? ""
                : fmt::format("; {} texts were cut to the model's longest input", job.truncated()));
  }
  return ExitCode::kOk;
}

}  // namespace

RunCommand AddEmbedCommand(CLI::App& app) {
  auto flags = std::make_shared<EmbedFlags>();
  CLI::App* command = app.add_subcommand(
      "embed", "Texts to vectors, from a file or standard input, without a server");
  command->add_option("MODEL", flags->model, "model folder")->required();
  command->add_option("FILE", flags->input, "texts; - is standard input")->capture_default_str();
  AddFlag(*command, "--format", flags->format, "lines: a text a line; jsonl: a JSON object a line");
  AddFlag(*command, "--field", flags->field, "with jsonl: the member that holds the text");
  AddFlag(
      *command, "--output", flags->output,
      "F.npy (float32 array), F.jsonl or - (one JSON object a line); a file appears under its name "
      "when it is complete");
  AddFlag(*command, "--dimensions", flags->dimensions,
          "cut vectors to so many; 0 for the model's own")
      ->check(CLI::NonNegativeNumber);
  AddFlag(*command, "--normalize", flags->normalize,
          "unit length: true, false, or model: as the model folder says")
      ->check(CLI::IsMember({"model", "true", "false"}));
  AddFlag(*command, "--over-length", flags->over_length,
          "inputs over the model's maximum: truncate or error")
      ->check(CLI::IsMember({"truncate", "error"}));
  AddFlag(*command, "--prompt", flags->prompt, "put before each text");
  AddFlag(*command, "--prompt-name", flags->prompt_name, "one of the model's prompts");
  AddFlag(
      *command, "--special-tokens-in-text", flags->special_tokens_in_text,
      "parse: \"[SEP]\" in a text is the special token, as the reference reads it; literal: text")
      ->check(CLI::IsMember({"parse", "literal"}));
  AddFlag(*command, "--quiet", flags->quiet, "true: no progress and no closing line");
  flags->engine.AddTo(*command);
  command->footer(
      "Examples:\n"
      "  bouquet embed models/all-MiniLM-L6-v2 texts.txt --output vectors.npy\n"
      "  bouquet embed models/all-MiniLM-L6-v2 corpus.jsonl --format jsonl --field body --output "
      "v.npy\n"
      "  echo 'hello world' | bouquet embed models/all-MiniLM-L6-v2");
  return [flags] { return RunEmbed(*flags); };
}

}  // namespace bouquet::cli
