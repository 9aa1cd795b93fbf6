#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "rose/backend/cuda/device_memory.h"
#include "rose/backend/cuda/event.h"
#include "rose/backend/cuda/pinned_memory.h"
#include "rose/tensor/tensor.h"

namespace bouquet::rose::cuda {

/// Copies weights from mapped files to the device, converting there: two page-locked buffers, so
/// that the disk, the copy and the conversion overlap, and no more host memory than those. Only
/// while loading. Thread: one.
class WeightUpload {
 public:
  static Result<std::unique_ptr<WeightUpload>> Make(DeviceAllocator& allocator,
                                                    cudaStream_t stream);

  /// source [rows, cols] to rows of `target` that are `target_stride` elements of `dtype` apart.
  /// The source may be changed or unmapped once this returns; the target is ready in stream order.
  Status Copy(const HostTensor& source, void* target, Dtype dtype, int64_t target_stride);

 private:
  struct Stage {
    PinnedMemory host;
    DeviceMemory device;
    Event done;
  };

  WeightUpload() = default;
  cudaStream_t stream_ = nullptr;
  Stage stages_[2];
  int next_ = 0;
};

}  // namespace bouquet::rose::cuda
