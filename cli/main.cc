// Picks the subcommand; nothing else.
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"

namespace bouquet::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 internal error, 2 wrong usage, 3 the model cannot be used, 4 an input "
    "is not acceptable,\n"
    "            5 the output cannot be written or the port cannot be opened,\n"
    "            6 bench: the vectors are wrong, 7 bench: the server does not answer, 130 "
    "interrupted.\n"
    "Each flag can be set in the environment too: --max-body-bytes is BOUQUET_MAX_BODY_BYTES.\n\n"
    "Examples:\n"
    "  bouquet serve models/all-MiniLM-L6-v2 --port 8080\n"
    "  bouquet embed models/all-MiniLM-L6-v2 texts.txt --output vectors.npy\n"
    "  bouquet COMMAND --help";

/// The parser's own words, but for the file of --config: of that it says neither what is wrong nor
/// which file it read.
std::string Explain(const CLI::ParseError& error, const CLI::App& app) {
  constexpr std::string_view kPrefix = "INI was not able to parse ";
  std::string message = error.what();
  if (dynamic_cast<const CLI::ConfigError*>(&error) == nullptr || !message.starts_with(kPrefix)) {
    return message;
  }
  constexpr std::string_view kOpenedSection = ".++";  // the parser's mark
  std::string found = message.substr(kPrefix.size());
  std::string_view kind = "flag";
  if (found.ends_with(kOpenedSection)) {
    found.resize(found.size() - kOpenedSection.size());
    kind = "section";
  }
  return fmt::format(
      "--config {}: no {} of this name: {}; each flag stands in the section of its command, "
      "without its dashes, as in [serve] and max-body-bytes = 1000000",
      app.get_option("--config")->as<std::string>(), kind, found);
}

struct LogFlags {
  std::string level = "info";
  std::string format = "text";
  bool operator==(const LogFlags&) const = default;
};

Status ParseAgainInto(CLI::App& app, int argc, char** argv, LogFlags& log) {
  const LogFlags running = log;
  log = LogFlags();
  std::string error;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& parse_error) {
    error = Explain(parse_error, app);
  }
  const bool unchanged = log == running;
  log = running;
  if (!error.empty()) {
    return InvalidArgument(error);
  }
  return unchanged ? Status() : FailedPrecondition("needs a restart: --log-level, --log-format");
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("Bouquet: embeddings over HTTP, from one binary.", "bouquet");
  app.set_version_flag("--version", "bouquet " BOUQUET_VERSION);
  app.require_subcommand(1);
  app.footer(kExitCodes);
  LogFlags log;
  AddFlag(app, "--log-level", log.level, "debug, info, warning, error or off");
  AddFlag(app, "--log-format", log.format, "text, or json: one object a line");
  app.set_config("--config", "",
                 "file of flags, TOML: a section a subcommand, max-body-bytes = 1000000; serve and "
                 "ivy read it again on SIGHUP");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.fallthrough();  // so that these may stand after the subcommand too
  const auto parse_again = [&] { return ParseAgainInto(app, argc, argv, log); };

  std::vector<std::pair<std::string, RunCommand>> commands;
  commands.emplace_back("serve", AddServeCommand(app, parse_again));
  commands.emplace_back("ivy", AddIvyCommand(app, parse_again));
  commands.emplace_back("tulip", AddTulipCommand(app));
  commands.emplace_back("embed", AddEmbedCommand(app));
  commands.emplace_back("tokenize", AddTokenizeCommand(app));
  commands.emplace_back("info", AddInfoCommand(app));
  commands.emplace_back("bench", AddBenchCommand(app));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& error) {
    return Fail(ExitCode::kUsage, InvalidArgument(Explain(error, app)));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  if (const Status status = StartLogging(log.level, log.format); !status.ok()) {
    return Fail(ExitCode::kUsage, status);
  }
  // gRPC's own lines on standard error say nothing that our errors do not; a value that was set
  // stays.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error value of the write, not the
                                  // end of the process
  for (const auto& [name, run] : commands) {
    if (app.got_subcommand(name)) {
      return run();
    }
  }
  return ExitCode::kUsage;
}

}  // namespace
}  // namespace bouquet::cli

int main(int argc, char** argv) { return static_cast<int>(bouquet::cli::Main(argc, argv)); }
