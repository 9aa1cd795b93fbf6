#pragma once

#include <functional>

#include "base/status.h"
#include "cli/exit_code.h"
#include "cli/flags.h"

namespace bouquet::cli {

/// What a subcommand leaves for main: it ran the parser's part by adding flags, and this does the
/// work.
using RunCommand = std::function<ExitCode()>;

/// Reads the command line, the file of --config and the environment once more, into the same
/// variables; what is not given keeps its value, so set it to its default before. Error:
/// kInvalidArgument, with what the parser says.
using ParseAgain = std::function<Status()>;

// One stem per subcommand. Each adds itself to `app`; what it returns runs when the user named it.
RunCommand AddServeCommand(CLI::App& app, ParseAgain parse_again);
RunCommand AddIvyCommand(CLI::App& app, ParseAgain parse_again);
RunCommand AddTulipCommand(CLI::App& app);
RunCommand AddEmbedCommand(CLI::App& app);
RunCommand AddTokenizeCommand(CLI::App& app);
RunCommand AddInfoCommand(CLI::App& app);
RunCommand AddBenchCommand(CLI::App& app);

}  // namespace bouquet::cli
