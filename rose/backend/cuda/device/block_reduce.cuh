#pragma once

namespace bouquet::rose::cuda {

/// The sum over the lanes of a warp, in every lane, in a fixed order.
template <class T>
__device__ __forceinline__ T WarpSum(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, distance);
  }
  return value;
}

/// The sum over the kThreads of a block, in every thread, in a fixed order. All threads take part;
/// `shared` holds kThreads / 32 values and may be used again after the next __syncthreads.
template <int kThreads, class T>
__device__ __forceinline__ T BlockSum(T value, T* shared) {
  value = WarpSum(value);
  if constexpr (kThreads > 32) {
    __syncthreads();  // an earlier use of `shared` has been read
    if (threadIdx.x % 32 == 0) {
      shared[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = shared[0];
#pragma unroll
    for (int warp = 1; warp < kThreads / 32; ++warp) {
      value += shared[warp];
    }
  }
  return value;
}

}  // namespace bouquet::rose::cuda
