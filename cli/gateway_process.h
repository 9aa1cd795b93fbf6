#pragma once

#include <functional>
#include <memory>
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
  virtual Result<ivy::EngineFacts> Load(const model::ModelFolder& folder,
                                        const std::stop_token& stop) = 0;
  /// What readiness says meanwhile.
  virtual const char* loading_reason() const = 0;

  // Once loaded.
  /// Error: of Encoder::Create.
  virtual Result<std::shared_ptr<ivy::Encoder>> MakeEncoder(const ivy::EncoderOptions& options,
                                                            ivy::TextSource source) = 0;
  virtual ivy::Readiness Check() const = 0;  // never waits
  /// After the gateway has stopped.
  virtual void Stop() = 0;
};

/// The flags as they are now. Error: kInvalidArgument for what cannot be parsed;
/// kFailedPrecondition for flags that need a restart, as far as the caller knows of them and the
/// gateway does not.
using ReadFlags = std::function<Result<GatewayFlags>()>;

/// Runs a gateway until SIGTERM or SIGINT: listens at once, loads, serves, drains. SIGHUP reads
/// flags, API keys, tokenizer files and prompts again; an error keeps all of them as they were.
/// `metrics` must outlive the backend.
ExitCode RunGateway(const GatewayFlags& flags, const ReadFlags& read_again, EncodeBackend& backend,
                    Metrics& metrics);

}  // namespace bouquet::cli
