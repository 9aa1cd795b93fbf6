#include "rose/heads/dense_layer.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/weight_files.h"
#include "rose/layers/linear.h"

namespace bouquet::rose {
namespace {

class DenseLayer final : public RowStage {
 public:
  explicit DenseLayer(WeightSet files) : weights(std::move(files)) {}

  TensorView Apply(const TensorView& rows, Backend& backend) override {
    const TensorView result = out.view().Rows(0, rows.rows);
    TensorView added;
    if (projection != nullptr) {
      backend.GemmRows({.weight = projection.get(), .residual = {}}, rows, result);
      added = result;
    } else if (adds_input) {
      added = rows;
    }
    backend.GemmRows({.weight = linear.get(), .residual = added}, rows, result);
    return result;
  }

  WeightSet weights;  // what was packed may point into the mapped file
  std::unique_ptr<PackedWeight> linear;
  std::unique_ptr<PackedWeight> projection;  // of the residual, when the widths differ
  bool adds_input = false;
  Tensor out;  // [max_rows, out_features] float32
};

Result<Activation> ActivationOf(const model::DenseModule& module) {
  constexpr std::array<std::pair<std::string_view, Activation>, 6> kNames = {
      {{"identity", Activation::kNone},
       {"tanh", Activation::kTanh},
       {"relu", Activation::kRelu},
       {"gelu", Activation::kGelu},
       {"sigmoid", Activation::kSigmoid},
       {"silu", Activation::kSilu}}};
  for (const auto& [name, activation] : kNames) {
    if (name == module.activation) {
      return activation;
    }
  }
  return Unimplemented(fmt::format("activation of a Dense module is not served: {} in {}",
                                   module.activation, module.folder.string()));
}

}  // namespace

Result<std::unique_ptr<RowStage>> LoadDenseLayer(const model::DenseModule& module, int32_t max_rows,
                                                 Backend& backend) {
  ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> files,
                   model::FindWeightFiles(module.folder));
  ASSIGN_OR_RETURN(WeightSet weights, WeightSet::Open(files));
  auto layer = std::make_unique<DenseLayer>(std::move(weights));
  LinearSources linear;
  RETURN_IF_ERROR(
      linear.Add(layer->weights, "linear", module.out_features, module.in_features, module.bias));
  ASSIGN_OR_RETURN(linear.desc().activation, ActivationOf(module));
  ASSIGN_OR_RETURN(layer->linear, backend.PackRows(linear.desc()));
  if (module.use_residual && module.in_features != module.out_features) {
    LinearSources projection;
    RETURN_IF_ERROR(
        projection.Add(layer->weights, "residual", module.out_features, module.in_features, false));
    ASSIGN_OR_RETURN(layer->projection, backend.PackRows(projection.desc()));
  }
  layer->adds_input = module.use_residual;
  RETURN_IF_ERROR(layer->weights.CheckNothingLeft([](std::string_view) { return false; }));
  ASSIGN_OR_RETURN(layer->out, backend.Allocate(Dtype::kFloat32, max_rows, module.out_features));
  return std::unique_ptr<RowStage>(std::move(layer));
}

}  // namespace bouquet::rose
