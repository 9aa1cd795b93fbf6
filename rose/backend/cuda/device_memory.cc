#include "rose/backend/cuda/device_memory.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>

#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

Status OutOfMemory(size_t wanted, std::string_view what, size_t taken, size_t free, size_t total,
                   double fraction) {
  return ResourceExhausted(fmt::format(
      "not enough memory on the CUDA device for {}: {:.0f} MiB wanted, {:.0f} MiB free of {:.0f} "
      "MiB, {:.0f} MiB taken so far, --memory-fraction {} allows {:.0f} MiB; lower --step-tokens "
      "and --max-input-tokens need less",
      what, static_cast<double>(wanted) / kMebibyte, static_cast<double>(free) / kMebibyte,
      static_cast<double>(total) / kMebibyte, static_cast<double>(taken) / kMebibyte, fraction,
      fraction * static_cast<double>(total) / kMebibyte));
}

}  // namespace

void FreeDevice::operator()(std::byte* data) const { cudaFree(data); }

Result<DeviceMemory> DeviceAllocator::Allocate(size_t bytes, std::string_view what) {
  bytes = std::max<size_t>(bytes, 1);
  size_t free = 0;
  size_t total = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free, &total), "the device's memory cannot be queried"));
  if (static_cast<double>(allocated_bytes_ + bytes) > fraction_ * static_cast<double>(total)) {
    return OutOfMemory(bytes, what, allocated_bytes_, free, total, fraction_);
  }
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return OutOfMemory(bytes, what, allocated_bytes_, free, total, fraction_);
  }
  RETURN_IF_ERROR(CudaStatus(error, fmt::format("no device memory for {}", what)));
  DeviceMemory memory(static_cast<std::byte*>(data));
  RETURN_IF_ERROR(CudaStatus(cudaMemset(data, 0, bytes), "device memory cannot be cleared"));
  // Other streams do not wait for the one that clears.
  RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(nullptr), "device memory cannot be cleared"));
  allocated_bytes_ += bytes;
  return memory;
}

int64_t DeviceAllocator::Available() const {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  const double allowed =
      fraction_ * static_cast<double>(total) - static_cast<double>(allocated_bytes_);
  return static_cast<int64_t>(std::clamp(allowed, 0.0, static_cast<double>(free)));
}

}  // namespace bouquet::rose::cuda
