#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "rose/backend/cuda/attention/attention_plan.h"
#include "rose/backend/cuda/attention/chooser.h"
#include "rose/backend/cuda/device_memory.h"

namespace bouquet::rose::cuda {

constexpr int32_t kMaxPlannedGroup = 64;  // query heads per kv head

/// Owns the device memory of the work lists, for the largest step.
class PlanLists {
 public:
  /// Error: kResourceExhausted for memory, kInternal for any other failure of the device.
  Status Allocate(const AttentionSizes& largest, DeviceAllocator& allocator);

  /// The lists that kernels of `family` may read in a step of these sizes, to be filled by
  /// LaunchPlan.
  AttentionPlan For(const AttentionShape& shape, const AttentionSizes& sizes,
                    AttentionFamily family) const;

 private:
  template <class T>
  T* Take(int64_t count);

  DeviceMemory memory_;
  size_t used_bytes_ = 0;
  AttentionPlan lists_;  // without capacities
};

}  // namespace bouquet::rose::cuda
