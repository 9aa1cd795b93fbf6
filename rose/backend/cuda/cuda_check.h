#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "base/status.h"

namespace bouquet::rose::cuda {

/// What a CUDA call said, for calls whose failure is an expected event (loading, graphs): kOk,
/// kResourceExhausted for memory, else kInternal with `what` and CUDA's own words.
Status CudaStatus(cudaError_t error, std::string_view what);

/// Ends the process: after such an error nothing that the device computes can be trusted, and CUDA
/// demands a new process. Whoever started it starts another; replicas take over meanwhile.
[[noreturn]] void EndAfterDeviceError(cudaError_t error, const char* call, const char* file,
                                      int line);

}  // namespace bouquet::rose::cuda

/// For calls of a step, which fail only when the device or the driver does.
#define CUDA_CHECK(call)                                                                       \
  do {                                                                                         \
    const cudaError_t cuda_check_error = (call);                                               \
    if (cuda_check_error != cudaSuccess) {                                                     \
      ::bouquet::rose::cuda::EndAfterDeviceError(cuda_check_error, #call, __FILE__, __LINE__); \
    }                                                                                          \
  } while (false)
