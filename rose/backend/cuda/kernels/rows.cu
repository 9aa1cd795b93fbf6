#include "rose/backend/cuda/kernels/rows.h"

#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/activation.cuh"
#include "rose/backend/cuda/device/block_reduce.cuh"

namespace bouquet::rose::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerWarp = 4;
constexpr double kSmallestLength = 1e-12;

/// A warp a weight row, for kRowsPerWarp rows of x at once.
template <Activation kActivation>
__global__ void __launch_bounds__(kThreads) GemmRowsKernel(GemmRowsArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t feature = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  const int64_t first = int64_t{blockIdx.y} * kRowsPerWarp;
  if (feature >= args.out_features) {
    return;
  }
  float sums[kRowsPerWarp] = {};
  for (int64_t k = lane; k < args.in_features; k += 32) {
    const float weight = args.weight[feature * args.weight_stride + k];
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      if (first + r < args.rows) {
        sums[r] += args.x[(first + r) * args.x_stride + k] * weight;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const float sum = WarpSum(sums[r]);
    const int64_t row = first + r;
    if (lane == 0 && row < args.rows) {
      float value = sum + (args.bias == nullptr ? 0.0F : args.bias[feature]);
      value = Activate<kActivation>(value);
      if (args.residual != nullptr) {
        value += args.residual[row * args.residual_stride + feature];
      }
      args.out[row * args.out_stride + feature] = value;
    }
  }
}

/// Not finite exactly when an element is not: squares of float32 do not overflow float64.
__device__ double SumOfSquares(const float* x, int64_t count, double* shared) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  return BlockSum<kThreads>(sum, shared);
}

__global__ void __launch_bounds__(kThreads)
    NormalizeRowsKernel(float* x, int64_t stride, int64_t width) {
  __shared__ double shared[kThreads / 32];
  float* row = x + blockIdx.x * stride;
  const double scale = 1.0 / fmax(sqrt(SumOfSquares(row, width, shared)), kSmallestLength);
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    row[i] = static_cast<float>(row[i] * scale);
  }
}

__global__ void __launch_bounds__(kThreads) FinishRowsKernel(FinishRowsArgs args) {
  __shared__ double shared[kThreads / 32];
  const int64_t row = blockIdx.x;
  const float* x = args.x + row * args.x_stride;
  float* out = args.out + row * args.width;
  const int64_t dimensions = args.dimensions[row];
  const double squares = SumOfSquares(x, dimensions, shared);
  const bool finite = isfinite(squares);
  const double scale = args.normalize[row] != 0 ? 1.0 / fmax(sqrt(squares), kSmallestLength) : 1.0;
  for (int64_t i = threadIdx.x; i < args.width; i += kThreads) {
    out[i] = finite && i < dimensions ? static_cast<float>(x[i] * scale) : 0.0F;
  }
  if (threadIdx.x == 0) {
    args.statuses[row] = finite ? RowStatus::kOk : RowStatus::kNotFinite;
  }
}

}  // namespace

void LaunchGemmRows(const GemmRowsArgs& args, cudaStream_t stream) {
  constexpr int64_t kFeatures = kThreads / 32;
  const dim3 grid(static_cast<unsigned>((args.out_features + kFeatures - 1) / kFeatures),
                  static_cast<unsigned>((args.rows + kRowsPerWarp - 1) / kRowsPerWarp));
  WithActivation(args.activation, [&]<Activation kActivation>() {
    GemmRowsKernel<kActivation><<<grid, kThreads, 0, stream>>>(args);
  });
  CUDA_CHECK(cudaGetLastError());
}

void LaunchNormalizeRows(float* x, int64_t stride, int64_t rows, int64_t width,
                         cudaStream_t stream) {
  NormalizeRowsKernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, stride, width);
  CUDA_CHECK(cudaGetLastError());
}

void LaunchFinishRows(const FinishRowsArgs& args, cudaStream_t stream) {
  FinishRowsKernel<<<static_cast<unsigned>(args.rows), kThreads, 0, stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
