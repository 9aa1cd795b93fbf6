#include "rose/layers/norm.h"

namespace bouquet::rose {
namespace {

Result<Tensor> LoadVector(WeightSet& weights, const std::string& name, int64_t width,
                          Backend& backend) {
  ASSIGN_OR_RETURN(const HostTensor vector, weights.TakeVector(name, width));
  return backend.Upload(vector, Dtype::kFloat32);
}

}  // namespace

Result<Norm> Norm::LoadLayerNorm(WeightSet& weights, const std::string& name, int64_t width,
                                 float epsilon, Backend& backend) {
  Norm norm;
  norm.kind = NormKind::kLayerNorm;
  norm.epsilon = epsilon;
  ASSIGN_OR_RETURN(norm.gain, LoadVector(weights, name + ".weight", width, backend));
  ASSIGN_OR_RETURN(norm.bias, LoadVector(weights, name + ".bias", width, backend));
  return norm;
}

Result<Norm> Norm::LoadRmsNorm(WeightSet& weights, const std::string& name, int64_t width,
                               float epsilon, Backend& backend) {
  Norm norm;
  norm.kind = NormKind::kRmsNorm;
  norm.epsilon = epsilon;
  ASSIGN_OR_RETURN(norm.gain, LoadVector(weights, name + ".weight", width, backend));
  return norm;
}

}  // namespace bouquet::rose
