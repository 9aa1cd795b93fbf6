#include "rose/layers/linear.h"

namespace bouquet::rose {

Status LinearSources::Add(WeightSet& weights, const std::string& name, int64_t out_features,
                          int64_t in_features, bool bias) {
  ASSIGN_OR_RETURN(const HostTensor weight,
                   weights.TakeMatrix(name + ".weight", out_features, in_features));
  desc_.weights.push_back(weight);
  if (bias) {
    ASSIGN_OR_RETURN(const HostTensor vector, weights.TakeVector(name + ".bias", out_features));
    desc_.biases.push_back(vector);
  }
  return {};
}

}  // namespace bouquet::rose
