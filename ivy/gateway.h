#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "ivy/config.h"
#include "ivy/handlers/served_model.h"

namespace bouquet::ivy {

/// Ivy: the HTTP server around encode functions. Its life:
///
///   Create   checks the config, registers every metric
///   Start    listens at once: live, not ready
///   SetReady once per model, when its engine is loaded and warm
///   Reload, Replace   at any time: other limits, keys, tokenizer files, prompts
///   Drain    not ready → refuses new requests → waits for those under way
///   Stop     closes everything
///
/// Thread: all methods from any thread but the gateway's own. Whatever answers the encode functions
/// must have answered or dropped every request before the gateway is destroyed: stop the gateway,
/// then the cores, then let both go.
class Gateway {
 public:
  /// The first model is the default one. `metrics` must outlive the gateway. Error:
  /// kInvalidArgument naming the flag; kNotFound for a file of keys that cannot be read.
  static Result<std::unique_ptr<Gateway>> Create(Config config, std::vector<ServedModel> models,
                                                 Metrics& metrics);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// Error: kAlreadyExists when the port is in use, kInvalidArgument when it cannot be bound.
  Status Start();
  /// The port in use, once started.
  uint16_t port() const;

  /// Shown by health checks until the model is ready.
  void SetLoading(std::string_view model, std::string progress);
  /// The model takes requests from now on. Once per model; its name must be served (CHECK).
  void SetReady(std::string_view model, EngineFacts facts);

  /// Goes over to another config and reads the keys again; requests under way keep what they began
  /// with. On an error everything stays as it was. Error: of Create; kFailedPrecondition naming
  /// flags that need a restart.
  Status Reload(Config config);
  /// Goes over to another tokenizer, other prompts or another encoder for a model. Its name must be
  /// served (CHECK).
  void Replace(ServedModel served);

  /// Turns not ready, waits --drain-delay-ms, refuses new requests, waits up to
  /// --drain-timeout-ms for those under way. False when some were left.
  bool Drain();
  /// Closes every connection and ends the threads.
  void Stop();

 private:
  class Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bouquet::ivy
