#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {

struct FreePinned {
  void operator()(std::byte* data) const { cudaFreeHost(data); }
};
/// Page-locked host memory, which the device copies without a stop.
using PinnedMemory = std::unique_ptr<std::byte[], FreePinned>;

inline Result<PinnedMemory> AllocatePinned(size_t bytes) {
  void* data = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaMallocHost(&data, bytes == 0 ? 1 : bytes),
                             "no page-locked host memory could be allocated"));
  return PinnedMemory(static_cast<std::byte*>(data));
}

}  // namespace bouquet::rose::cuda
