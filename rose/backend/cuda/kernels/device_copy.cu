#include "rose/backend/cuda/kernels/device_copy.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kPerThread = 4;  // loads under way at once
constexpr size_t kBytesOfBlock = sizeof(uint4) * kThreads * kPerThread;

__global__ void __launch_bounds__(kThreads) CopyKernel(const uint4* from, uint4* to) {
  const int64_t first = int64_t{blockIdx.x} * kThreads * kPerThread + threadIdx.x;
  uint4 values[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    values[i] = from[first + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    to[first + i * kThreads] = values[i];
  }
}

}  // namespace

void LaunchDeviceCopy(const std::byte* from, std::byte* to, size_t bytes, cudaStream_t stream) {
  CHECK_EQ(bytes % kBytesOfBlock, 0U);
  CopyKernel<<<static_cast<unsigned>(bytes / kBytesOfBlock), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(from), reinterpret_cast<uint4*>(to));
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
