#include "cli/flags.h"

#include <cctype>

namespace bouquet::cli {

std::string EnvironmentName(const std::string& flag) {
  std::string name = "BOUQUET_";
  for (const char c : flag.substr(flag.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

CLI::Option* AddSwitch(CLI::App& command, const std::string& flag, bool& value,
                       const std::string& help) {
  return command.add_flag(flag, value, help)->envname(EnvironmentName(flag));
}

}  // namespace bouquet::cli
