#include "rose/backend/cuda/kernels/convert.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

__device__ float ToFloat(float value) { return value; }
__device__ float ToFloat(__half value) { return __half2float(value); }
__device__ float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void FromFloat(float value, float* to) { *to = value; }
__device__ void FromFloat(float value, __half* to) { *to = __float2half_rn(value); }
__device__ void FromFloat(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }

template <class From, class To>
__global__ void __launch_bounds__(kThreads)
    ConvertKernel(const From* source, To* target, int64_t target_stride, int64_t cols,
                  int64_t count) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    FromFloat(ToFloat(source[i]), target + i / cols * target_stride + i % cols);
  }
}

template <class From, class To>
void Launch(const ConvertArgs& args, cudaStream_t stream) {
  const int64_t count = args.rows * args.cols;
  const int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks);
  ConvertKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      static_cast<const From*>(args.source), static_cast<To*>(args.target), args.target_stride,
      args.cols, count);
  CUDA_CHECK(cudaGetLastError());
}

template <class From>
void LaunchFrom(const ConvertArgs& args, cudaStream_t stream) {
  switch (args.to) {
    case Dtype::kFloat32: return Launch<From, float>(args, stream);
    case Dtype::kFloat16: return Launch<From, __half>(args, stream);
    case Dtype::kBfloat16: return Launch<From, __nv_bfloat16>(args, stream);
    default: CHECK(false);
  }
}

}  // namespace

void LaunchConvert(const ConvertArgs& args, cudaStream_t stream) {
  if (args.rows * args.cols == 0) {
    return;
  }
  switch (args.from) {
    case Dtype::kFloat32: return LaunchFrom<float>(args, stream);
    case Dtype::kFloat16: return LaunchFrom<__half>(args, stream);
    case Dtype::kBfloat16: return LaunchFrom<__nv_bfloat16>(args, stream);
    default: CHECK(false);
  }
}

}  // namespace bouquet::rose::cuda
