#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/encode/encoder.h"
#include "ivy/encode/tokenize_stage.h"
#include "model/model_folder.h"
#include "text/text_pipeline.h"
#include "tulip/core.h"
#include "tulip/step_engine.h"

namespace bouquet::bench {

/// A core of MiniLM's size over an engine that answers at once, for the folder's identity.
Result<std::unique_ptr<tulip::Core>> StartNullCore(const model::ModelFolder& folder,
                                                   std::unique_ptr<tulip::StepEngine> engine,
                                                   Metrics& metrics, const Clock& clock);

/// A model in this process with all that a real one has but the engine: texts are tokenized, chunks
/// go through Tulip's queue and both its threads, and the rows are zeros.
class NullModel {
 public:
  /// Puts something around the replica, or around the engine: to look at the time.
  struct Hooks {
    std::function<std::unique_ptr<tulip::StepEngine>()> make_engine;  // default: NullStepEngine
    std::function<std::unique_ptr<ivy::Replica>(std::unique_ptr<ivy::Replica>)> wrap_replica;
  };
  /// `metrics` and `clock` must outlive it.
  static Result<std::unique_ptr<NullModel>> Load(const std::string& path, const Hooks& hooks,
                                                 Metrics& metrics, const Clock& clock);

  const model::ModelFolder& folder() const { return folder_; }
  ivy::Encoder& encoder() { return *encoder_; }
  const text::TextPipeline& pipeline() const { return *pipeline_; }

 private:
  explicit NullModel(model::ModelFolder folder) : folder_(std::move(folder)) {}

  // In the order in which they depend on each other.
  const model::ModelFolder folder_;
  std::shared_ptr<const text::TextPipeline> pipeline_;
  std::unique_ptr<ivy::TokenizeStage> stage_;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<ivy::ReplicaPool> pool_;
  std::shared_ptr<ivy::Encoder> encoder_;
};

}  // namespace bouquet::bench
