#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace bouquet::rose::cuda {

/// Copies `bytes`, a multiple of 64 KiB, with 16-byte accesses: what the speed of other kernels is
/// compared with. Captured copies of the runtime take a slower way.
void LaunchDeviceCopy(const std::byte* from, std::byte* to, size_t bytes, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
