#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "rose/backend/backend.h"
#include "rose/weights/weight_set.h"

namespace bouquet::rose {

/// y = x·Wᵀ + b, where W is stacked from one or several matrices of the file (query, key and value
/// in one product). Collect the sources, then Pack.
class LinearSources {
 public:
  /// Takes `name`.weight [out_features, in_features] and, if `bias`, `name`.bias [out_features].
  Status Add(WeightSet& weights, const std::string& name, int64_t out_features, int64_t in_features,
             bool bias);

  LinearDesc& desc() { return desc_; }
  Result<std::unique_ptr<PackedWeight>> Pack(Backend& backend) const { return backend.Pack(desc_); }

 private:
  LinearDesc desc_;
};

}  // namespace bouquet::rose
