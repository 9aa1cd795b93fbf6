#pragma once

#include <string>

#include <CLI/CLI.hpp>  // the command-line library; visible in cli/ only

namespace bouquet::cli {

/// "--max-body-bytes" -> "BOUQUET_MAX_BODY_BYTES".
std::string EnvironmentName(const std::string& flag);

/// A flag with its environment twin and its default in --help. The command line beats the
/// file of --config, and that the environment. Booleans take true and false, so that both can be
/// said in either place.
template <class T>
CLI::Option* AddFlag(CLI::App& command, const std::string& flag, T& value,
                     const std::string& help) {
  return command.add_option(flag, value, help)
      ->envname(EnvironmentName(flag))
      ->capture_default_str();
}

/// A flag that is off unless it is given, alone or as --flag=true or --flag=false.
CLI::Option* AddSwitch(CLI::App& command, const std::string& flag, bool& value,
                       const std::string& help);

}  // namespace bouquet::cli
