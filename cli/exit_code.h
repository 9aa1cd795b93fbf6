#pragma once

#include "base/status.h"

namespace bouquet::cli {

/// What the process tells its caller. Documented in docs/errors.md and in `bouquet --help`; stable.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,       // a bug or a failing machine: report it
  kUsage = 2,          // wrong flags or arguments
  kModel = 3,          // the model folder cannot be used
  kInput = 4,          // a line of the input is not acceptable
  kOutput = 5,         // the output cannot be written, or the port cannot be opened
  kDisagreement = 6,   // bench: vectors differ from the reference; no times are reported
  kServer = 7,         // bench: the server cannot be reached, or answers nothing as asked
  kInterrupted = 130,  // stopped by SIGINT; the output is left as it was
};

/// "bouquet: error: …" on standard error; returns `code`.
ExitCode Fail(ExitCode code, const Status& status);

}  // namespace bouquet::cli
