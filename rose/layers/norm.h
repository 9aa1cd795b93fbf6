#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "rose/backend/backend.h"
#include "rose/weights/weight_set.h"

namespace bouquet::rose {

/// LayerNorm (gain and bias) or RMSNorm (gain) over rows of `width`; float32 parameters.
struct Norm {
  NormKind kind = NormKind::kNone;
  float epsilon = 0;
  Tensor gain;  // [1, width]
  Tensor bias;  // [1, width]; empty for RMSNorm

  /// Takes `name`.weight and `name`.bias.
  static Result<Norm> LoadLayerNorm(WeightSet& weights, const std::string& name, int64_t width,
                                    float epsilon, Backend& backend);
  /// Takes `name`.weight.
  static Result<Norm> LoadRmsNorm(WeightSet& weights, const std::string& name, int64_t width,
                                  float epsilon, Backend& backend);

  NormWeights weights() const { return {gain.view(), bias.view(), epsilon}; }
  NormDesc desc() const { return {kind, weights()}; }
};

}  // namespace bouquet::rose
