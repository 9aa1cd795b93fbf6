#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/traits.h"
#include "rose/weights/weight_set.h"

namespace bouquet::rose {

/// How many parameters the network has, by group (design/models.md section 12), without what
/// HarmlessReason lists.
struct ParameterCount {
  int64_t embeddings = 0;  // tables (MPNet's of distances too), and their norm if there is one
  int64_t layers = 0;
  int64_t final_norm = 0;
  int64_t total() const { return embeddings + layers + final_norm; }
  bool operator==(const ParameterCount&) const = default;
};

ParameterCount ExpectedParameters(const model::Traits& traits);

/// What has been taken from `weights`, by the same groups.
ParameterCount TakenParameters(model::Architecture architecture, const WeightSet& weights);

/// Compares the two: every tensor's shape was checked when it was taken, so a difference means that
/// a model file forgot one. Error: kInternal naming the group and both counts.
Status CheckParameterCount(const model::Traits& traits, const WeightSet& weights);

}  // namespace bouquet::rose
