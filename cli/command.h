#pragma once

#include <functional>

#include "cli/exit_code.h"
#include "cli/flags.h"

namespace bouquet::cli {

/// What a subcommand leaves for main: it ran the parser's part by adding flags, and this does the
/// work.
using RunCommand = std::function<ExitCode()>;

// One stem per subcommand. Each adds itself to `app`; what it returns runs when the user named it.
RunCommand AddServeCommand(CLI::App& app);
RunCommand AddIvyCommand(CLI::App& app);
RunCommand AddTulipCommand(CLI::App& app);
RunCommand AddEmbedCommand(CLI::App& app);
RunCommand AddTokenizeCommand(CLI::App& app);
RunCommand AddInfoCommand(CLI::App& app);
RunCommand AddBenchCommand(CLI::App& app);

}  // namespace bouquet::cli
