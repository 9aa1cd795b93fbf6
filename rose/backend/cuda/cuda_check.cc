#include "rose/backend/cuda/cuda_check.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/log.h"

namespace bouquet::rose::cuda {

Status CudaStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) {
    return {};
  }
  std::string message =
      fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
  cudaGetLastError();  // an error that is returned must not be found again by a later check
  return error == cudaErrorMemoryAllocation ? ResourceExhausted(std::move(message))
                                            : Internal(std::move(message));
}

void EndAfterDeviceError(cudaError_t error, const char* call, const char* file, int line) {
  LogError(
      "the CUDA device failed, and this process cannot go on: {} ({}) from {} at {}:{}. Start the "
      "process again; if it happens again, check the device with nvidia-smi",
      cudaGetErrorString(error), cudaGetErrorName(error), call, file, line);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace bouquet::rose::cuda
