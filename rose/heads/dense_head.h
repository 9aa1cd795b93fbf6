#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "model/pipeline.h"
#include "rose/backend/backend.h"
#include "rose/weights/weight_set.h"

namespace bouquet::rose {

/// One module behind the Transformer, ready to run.
class RowStage {
 public:
  virtual ~RowStage() = default;
  /// Rows in, rows out: both [num_rows, width] float32; the result is valid until the next
  /// step.
  virtual TensorView Apply(const TensorView& rows, Backend& backend) = 0;
};

/// The head `kDense`: hidden states → one row per sequence or span, through the model folder's own
/// pipeline (pooling, dense layers, normalisation, in the order of modules.json).
class DenseHead {
 public:
  /// Error: kNotFound or kInvalidArgument naming a Dense module's tensor and file.
  static Result<std::unique_ptr<DenseHead>> Load(const model::Pipeline& pipeline,
                                                 int32_t hidden_size, int32_t max_rows,
                                                 Backend& backend);

  /// Ends the step: the rows go to its slot. hidden: [num_tokens, hidden_size] in the compute
  /// dtype. Call inside Backend::RunStep only.
  void Apply(const TensorView& hidden, const StepInputs& inputs, Backend& backend);

 private:
  std::vector<PoolingMode> pooling_modes_;
  Tensor pooled_;  // [max_rows, modes · hidden_size] float32
  std::vector<std::unique_ptr<RowStage>> stages_;
};

}  // namespace bouquet::rose
