#include "rose/backend/linear_shapes.h"

#include <fmt/format.h>

#include "rose/tensor/convert.h"

namespace bouquet::rose {

Status CheckLinearDesc(const LinearDesc& desc) {
  if (desc.weights.empty()) {
    return InvalidArgument("a linear layer needs at least one weight");
  }
  for (const HostTensor& weight : desc.weights) {
    if (weight.cols != desc.in_features() || weight.rows <= 0 || weight.cols <= 0) {
      return InvalidArgument(
          fmt::format("stacked weights must have equal in_features: [{}, {}] beside [{}, {}]",
                      weight.rows, weight.cols, desc.weights.front().rows, desc.in_features()));
    }
    if (!CanConvert(weight.dtype, Dtype::kFloat32)) {
      return InvalidArgument(fmt::format("a weight must be float32, float16 or bfloat16: {}",
                                         DtypeName(weight.dtype)));
    }
  }
  if (!desc.biases.empty() && desc.biases.size() != desc.weights.size()) {
    return InvalidArgument(
        fmt::format("a linear layer needs one bias per weight or none: {} for {}",
                    desc.biases.size(), desc.weights.size()));
  }
  for (size_t i = 0; i < desc.biases.size(); ++i) {
    const HostTensor& bias = desc.biases[i];
    if (bias.rows * bias.cols != desc.weights[i].rows || !CanConvert(bias.dtype, Dtype::kFloat32)) {
      return InvalidArgument(
          fmt::format("a bias must be a float vector of out_features: [{}, {}] {} for {}",
                      bias.rows, bias.cols, DtypeName(bias.dtype), desc.weights[i].rows));
    }
  }
  if (desc.gated && desc.out_features() % 2 != 0) {
    return InvalidArgument(
        fmt::format("a gated layer needs an even number of outputs: {}", desc.out_features()));
  }
  return {};
}

}  // namespace bouquet::rose
