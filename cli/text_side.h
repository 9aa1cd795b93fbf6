#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "ivy/encode/tokenize_stage.h"
#include "model/model_folder.h"
#include "text/text_pipeline.h"

namespace bouquet::cli {

/// What a gateway needs of a model folder: its tokenizer, and the threads that run it.
class TextSide {
 public:
  /// A tokenizer of a kind that is not served is a warning: then the model takes token ids only.
  /// `workers` 0: one for every two cores. `metrics` and `clock` must outlive it. Error: of
  /// TextPipeline::Load.
  static Result<std::unique_ptr<TextSide>> Load(const model::ModelFolder& folder, int32_t workers,
                                                Metrics& metrics, const Clock& clock);

  ivy::TokenizeStage& stage() { return *stage_; }

 private:
  std::unique_ptr<text::TextPipeline> pipeline_;
  std::unique_ptr<ivy::TokenizeStage> stage_;
};

}  // namespace bouquet::cli
