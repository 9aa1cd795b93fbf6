#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "rose/engine.h"

namespace bouquet::cli {

/// How the model runs: shared by the commands that load an engine.
struct EngineFlags {
  std::string device = "auto";
  std::string dtype = "auto";
  int32_t threads = 0;
  bool pin_threads = false;
  int32_t step_tokens = 0;
  int32_t max_batch_sequences = 512;
  std::string graphs = "lazy";
  std::string attention = "auto";
  double memory_fraction = 0.9;

  void AddTo(CLI::App& command);
  rose::EngineOptions Options() const;
  /// An engine never changes while it runs. Error: kFailedPrecondition naming the flags that need a
  /// restart.
  Status CheckReload(const EngineFlags& next) const;
};

/// Of an engine that could not be loaded: kUsage where the error is about one of these flags, which
/// this build, this machine or this kind of device does not take, else kModel.
ExitCode ExitOfLoading(const Status& status);

}  // namespace bouquet::cli
