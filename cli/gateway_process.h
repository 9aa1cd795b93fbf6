#pragma once

#include <stop_token>

#include "base/metrics.h"
#include "base/status.h"
#include "cli/exit_code.h"
#include "cli/gateway_flags.h"
#include "ivy/encode/encoder.h"
#include "ivy/handlers/served_model.h"
#include "model/model_folder.h"

namespace bouquet::cli {

/// What is behind the gateway of a process: an engine in it, or replicas behind a network.
class EncodeBackend {
 public:
  virtual ~EncodeBackend() = default;

  /// Blocks until the model can be used. Error: why it never can; kCancelled when `stop` came
  /// first.
  virtual Result<ivy::EngineFacts> Load(model::ModelFolder folder, const std::stop_token& stop) = 0;
  /// What readiness says meanwhile.
  virtual const char* loading_reason() const = 0;

  // Once loaded.
  virtual ivy::Encoder& encoder() = 0;
  virtual ivy::Readiness Check() const = 0;  // never waits
  /// After the gateway has stopped.
  virtual void Stop() = 0;
};

/// Runs a gateway until SIGTERM or SIGINT: listens at once, loads, serves, drains. SIGHUP reads the
/// API keys again. `metrics` must outlive the backend.
ExitCode RunGateway(const GatewayFlags& flags, EncodeBackend& backend, Metrics& metrics);

}  // namespace bouquet::cli
