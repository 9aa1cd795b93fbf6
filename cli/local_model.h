#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "cli/engine_flags.h"
#include "cli/text_side.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/encode/encoder.h"
#include "model/model_folder.h"
#include "tulip/core.h"

namespace bouquet::cli {

struct LocalModelOptions {
  EngineFlags engine;
  int32_t max_input_tokens = 0;  // 0: the model's maximum
  int64_t max_tokens_per_request = 300'000;
  std::chrono::milliseconds max_queue{2000};
  int32_t text_workers = 0;  // 0: one for every two cores
};

/// A model served in this process, text in and rows out: tokenizer, encoder, in-process replica,
/// core and engine, wired. Executors that run its encoder must live until it has been destroyed.
class LocalModel {
 public:
  /// Error: what the folder, the tokenizer (other than "not served": then the model takes token
  /// ids only), the engine or the core cannot be started for. `metrics` and `clock` must outlive
  /// it.
  static Result<std::unique_ptr<LocalModel>> Load(model::ModelFolder folder,
                                                  const LocalModelOptions& options,
                                                  Metrics& metrics, const Clock& clock);
  ~LocalModel();

  ivy::Encoder& encoder() { return *encoder_; }
  tulip::Core& core() { return *core_; }
  const model::ModelFolder& folder() const { return folder_; }

 private:
  explicit LocalModel(model::ModelFolder folder) : folder_(std::move(folder)) {}

  // In the order in which they depend on each other.
  model::ModelFolder folder_;
  std::unique_ptr<TextSide> text_;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<ivy::ReplicaPool> pool_;
  std::unique_ptr<ivy::Encoder> encoder_;
};

}  // namespace bouquet::cli
