// Picks the subcommand; nothing else.
#include <csignal>
#include <cstdlib>
#include <string>
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

ExitCode Main(int argc, char** argv) {
  CLI::App app("Bouquet: embeddings over HTTP, from one binary.", "bouquet");
  app.set_version_flag("--version", "bouquet " BOUQUET_VERSION);
  app.require_subcommand(1);
  app.footer(kExitCodes);
  std::string log_level = "info";
  std::string log_format = "text";
  AddFlag(app, "--log-level", log_level, "debug, info, warning, error or off");
  AddFlag(app, "--log-format", log_format, "text, or json: one object a line");
  app.fallthrough();  // so that both may stand after the subcommand too

  std::vector<std::pair<std::string, RunCommand>> commands;
  commands.emplace_back("serve", AddServeCommand(app));
  commands.emplace_back("ivy", AddIvyCommand(app));
  commands.emplace_back("tulip", AddTulipCommand(app));
  commands.emplace_back("embed", AddEmbedCommand(app));
  commands.emplace_back("tokenize", AddTokenizeCommand(app));
  commands.emplace_back("info", AddInfoCommand(app));
  commands.emplace_back("bench", AddBenchCommand(app));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  if (const Status status = StartLogging(log_level, log_format); !status.ok()) {
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
