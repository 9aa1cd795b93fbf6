#include "cli/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

namespace bouquet::cli {

ExitCode Fail(ExitCode code, const Status& status) {
  fmt::print(stderr, "bouquet: error: {}\n", status.message());
  return code;
}

}  // namespace bouquet::cli
