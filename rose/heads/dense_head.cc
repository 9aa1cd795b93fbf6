#include "rose/heads/dense_head.h"

#include "rose/heads/dense_layer.h"

namespace bouquet::rose {
namespace {

class NormalizeStage final : public RowStage {
 public:
  TensorView Apply(const TensorView& rows, Backend& backend) override {
    backend.NormalizeRows(rows);
    return rows;
  }
};

PoolingMode BackendMode(model::PoolingMode mode) {
  switch (mode) {
    case model::PoolingMode::kCls: return PoolingMode::kCls;
    case model::PoolingMode::kMax: return PoolingMode::kMax;
    case model::PoolingMode::kMean: return PoolingMode::kMean;
    case model::PoolingMode::kMeanSqrtLength: return PoolingMode::kMeanSqrtLength;
    case model::PoolingMode::kWeightedMean: return PoolingMode::kWeightedMean;
    case model::PoolingMode::kLastToken: return PoolingMode::kLastToken;
  }
  return PoolingMode::kMean;
}

}  // namespace

Result<std::unique_ptr<DenseHead>> DenseHead::Load(const model::Pipeline& pipeline,
                                                   int32_t hidden_size, int32_t max_rows,
                                                   Backend& backend) {
  auto head = std::make_unique<DenseHead>();
  for (const model::Module& module : pipeline.modules) {
    if (const auto* pooling = std::get_if<model::PoolingModule>(&module)) {
      for (const model::PoolingMode mode : pooling->modes) {
        head->pooling_modes_.push_back(BackendMode(mode));
      }
    } else if (const auto* dense = std::get_if<model::DenseModule>(&module)) {
      ASSIGN_OR_RETURN(std::unique_ptr<RowStage> stage, LoadDenseLayer(*dense, max_rows, backend));
      head->stages_.push_back(std::move(stage));
    } else {
      head->stages_.push_back(std::make_unique<NormalizeStage>());
    }
  }
  CHECK(!head->pooling_modes_.empty());
  const auto modes = static_cast<int64_t>(head->pooling_modes_.size());
  ASSIGN_OR_RETURN(head->pooled_, backend.Allocate(Dtype::kFloat32, max_rows, modes * hidden_size));
  return head;
}

void DenseHead::Apply(const TensorView& hidden, const StepInputs& inputs, Backend& backend) {
  TensorView rows = pooled_.view().Rows(0, inputs.num_rows);
  backend.Pool({.modes = pooling_modes_}, inputs, hidden, rows);
  for (const std::unique_ptr<RowStage>& stage : stages_) {
    rows = stage->Apply(rows, backend);
  }
  backend.FinishRows(inputs, rows);
}

}  // namespace bouquet::rose
