#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/flags.h"
#include "ivy/config.h"
#include "ivy/encode/encoder.h"
#include "model/model_folder.h"

namespace bouquet::cli {

/// What a gateway serves, and how: shared by the commands that run one.
struct GatewayFlags {
  std::string model;
  std::string name;
  std::vector<std::string> aliases;
  std::string over_length = "dialect";
  std::string token_input = "accept";
  std::string special_tokens_in_text = "parse";
  int32_t text_workers = 0;
  ivy::Config config;

  void AddTo(CLI::App& command);
  /// The config with the flags that are words turned into values.
  ivy::Config Resolve() const;
  /// The folder under the name that was asked for. Error: of ModelFolder::Open.
  Result<model::ModelFolder> OpenFolder() const;
  ivy::EncoderOptions EncoderOptions() const;
  /// Error: kInvalidArgument for a --max-input-tokens over the model's maximum.
  Status CheckAgainst(const model::ModelFolder& folder) const;
  /// May a running gateway go over to `next`, as far as the gateway itself does not say? Error:
  /// kFailedPrecondition naming the flags that need a restart.
  Status CheckReload(const GatewayFlags& next) const;
};

}  // namespace bouquet::cli
