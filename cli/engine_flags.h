#pragma once

#include <cstdint>
#include <string>

#include "cli/flags.h"
#include "rose/engine.h"

namespace bouquet::cli {

/// How the model runs: shared by the commands that load an engine.
struct EngineFlags {
  std::string device = "auto";
  std::string dtype = "auto";
  int32_t threads = 0;
  int32_t step_tokens = 0;
  int32_t max_batch_sequences = 512;

  void AddTo(CLI::App& command);
  rose::EngineOptions Options() const;
  bool operator==(const EngineFlags&) const = default;
};

}  // namespace bouquet::cli
