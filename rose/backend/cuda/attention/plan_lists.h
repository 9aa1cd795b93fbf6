#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "rose/backend/cuda/attention/attention_plan.h"
#include "rose/backend/cuda/attention/chooser.h"

namespace bouquet::rose::cuda {

constexpr int32_t kMaxPlannedGroup = 64;  // query heads per kv head

/// Owns the device memory of the work lists, for the largest step.
class PlanLists {
 public:
  PlanLists() = default;
  ~PlanLists();
  PlanLists(const PlanLists&) = delete;
  PlanLists& operator=(const PlanLists&) = delete;

  /// Error: kResourceExhausted for memory, kInternal for any other failure of the device.
  Status Allocate(const AttentionSizes& largest);

  /// The lists that kernels of `family` may read in a step of these sizes, to be filled by
  /// LaunchPlan.
  AttentionPlan For(const AttentionShape& shape, const AttentionSizes& sizes,
                    AttentionFamily family) const;

 private:
  template <class T>
  T* Take(int64_t count);

  void* memory_ = nullptr;
  size_t used_bytes_ = 0;
  AttentionPlan lists_;  // without capacities
};

}  // namespace bouquet::rose::cuda
