#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "cli/engine_flags.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/encode/encoder.h"
#include "model/model_folder.h"
#include "tulip/core.h"

namespace bouquet::cli {

struct LocalModelOptions {
  EngineFlags engine;
  int32_t max_input_tokens = 0;  // 0: the model's maximum
  std::chrono::milliseconds max_queue{2000};
  int32_t text_workers = 0;  // 0: one for every two cores
};

/// A model served in this process: text workers, in-process replica, core and engine, wired.
/// Encoders over it, and the executors that run them, must live until it has been destroyed.
class LocalModel {
 public:
  /// Error: what the folder, the engine or the core cannot be started for. `metrics` and `clock`
  /// must outlive it.
  static Result<std::unique_ptr<LocalModel>> Load(const model::ModelFolder& folder,
                                                  const LocalModelOptions& options,
                                                  Metrics& metrics, const Clock& clock);
  ~LocalModel();

  /// Error: of Encoder::Create.
  Result<std::shared_ptr<ivy::Encoder>> MakeEncoder(const ivy::EncoderOptions& options,
                                                    ivy::TextSource source) {
    return ivy::Encoder::Create(options, std::move(source), *stage_, *pool_);
  }
  tulip::Core& core() { return *core_; }

 private:
  LocalModel() = default;

  // In the order in which they depend on each other.
  std::unique_ptr<ivy::TokenizeStage> stage_;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<ivy::ReplicaPool> pool_;
};

}  // namespace bouquet::cli
