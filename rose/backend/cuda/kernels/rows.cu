#include "rose/backend/cuda/kernels/rows.h"

#include "base/check.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/device/activation.cuh"
#include "rose/backend/cuda/device/block_reduce.cuh"
#include "rose/backend/cuda/device/vector_access.cuh"

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

/// clamp(round half to even(127 · tanh(x))) as float64 gives it: float32 errs by less than 2e-5, so
/// what lies clearly closer to one integer needs no second look.
__device__ int TanhInt8(float x) {
  constexpr float kCloseToHalf = 1e-4F;
  const float value = 127.0F * tanhf(x);
  float rounded = rintf(value);
  if (fabsf(fabsf(value - rounded) - 0.5F) < kCloseToHalf) {
    rounded = static_cast<float>(rint(127.0 * tanh(static_cast<double>(x))));
  }
  return static_cast<int>(rounded);  // within ±127
}

/// A row's values and what becomes of them, kVec neighbours a thread. Words are of four bytes.
template <int kVec>
struct RowWriter {
  const float* x;
  uint32_t* slot;  // [width] words
  int width;
  int dimensions;  // 0 where the row is not finite
  double scale;

  __device__ __forceinline__ Values<kVec> At(int column) const {
    Values<kVec> values = {};
    if (column < width) {
      values = Load<kVec>(x + column);
    }
#pragma unroll
    for (int k = 0; k < kVec; ++k) {
      values.at[k] = column + k < dimensions ? static_cast<float>(values.at[k] * scale) : 0.0F;
    }
    return values;
  }

  /// `function(column)` in whole warps, so that lanes may exchange values; the last columns may lie
  /// behind the row.
  template <class Function>
  __device__ __forceinline__ void ForEachColumn(Function function) const {
    for (int first = 0; first < width; first += kThreads * kVec) {
      function(first + static_cast<int>(threadIdx.x) * kVec);
    }
  }

  __device__ __forceinline__ void Zero(int first_word) const {
    for (int word = first_word + static_cast<int>(threadIdx.x); word < width; word += kThreads) {
      slot[word] = 0;
    }
  }

  __device__ void WriteFloats() const {
    ForEachColumn([&](int column) {
      if (column >= width) {
        return;
      }
      const Values<kVec> values = At(column);
      if constexpr (kVec == 4) {
        *reinterpret_cast<float4*>(slot + column) =
            make_float4(values.at[0], values.at[1], values.at[2], values.at[3]);
      } else {
        slot[column] = __float_as_uint(values.at[0]);
      }
    });
  }

  __device__ void WriteInt8s() const {
    const int words = (width + 3) / 4;
    ForEachColumn([&](int column) {
      if (column >= 4 * words) {
        return;
      }
      const Values<kVec> values = At(column);
      if constexpr (kVec == 4) {
        uint32_t word = 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          word |= (static_cast<uint32_t>(TanhInt8(values.at[k])) & 0xffU) << (8 * k);
        }
        slot[column / 4] = word;
      } else {
        reinterpret_cast<int8_t*>(slot)[column] = static_cast<int8_t>(TanhInt8(values.at[0]));
      }
    });
    Zero(words);
  }

  __device__ void WriteSignBits(bool msb_first) const {
    constexpr int kLanesPerWord = 32 / kVec;
    const int lane = static_cast<int>(threadIdx.x) % kLanesPerWord;
    ForEachColumn([&](int column) {
      const Values<kVec> values = At(column);
      uint32_t word = 0;
#pragma unroll
      for (int k = 0; k < kVec; ++k) {
        const bool bit = column + k < dimensions && values.at[k] >= 0;
        word |= (bit ? 1U : 0U) << (lane * kVec + k);
      }
#pragma unroll
      for (int distance = kLanesPerWord / 2; distance > 0; distance /= 2) {
        word |= __shfl_xor_sync(0xffffffffU, word, distance);
      }
      if (lane == 0 && column < width) {
        // Reversed as a whole and its bytes put back: each byte is reversed in itself.
        slot[column / 32] = msb_first ? __byte_perm(__brev(word), 0, 0x0123) : word;
      }
    });
    Zero((width + 31) / 32);
  }
};

template <int kVec>
__global__ void __launch_bounds__(kThreads) FinishRowsKernel(FinishRowsArgs args) {
  __shared__ double shared[kThreads / 32];
  const int64_t row = blockIdx.x;
  const float* x = args.x + row * args.x_stride;
  const int dimensions = args.dimensions[row];
  const double squares = SumOfSquares(x, dimensions, shared);
  const bool finite = isfinite(squares);
  const double length = fmax(sqrt(squares), kSmallestLength);
  const RowWriter<kVec> writer = {
      .x = x,
      .slot = reinterpret_cast<uint32_t*>(args.slots) + row * args.width,
      .width = static_cast<int>(args.width),
      .dimensions = finite ? dimensions : 0,
      .scale = args.normalize[row] != 0 ? 1.0 / length : 1.0};
  switch (args.dtypes[row]) {
    case model::RowDtype::kFloat32: writer.WriteFloats(); break;
    case model::RowDtype::kTanhInt8: writer.WriteInt8s(); break;
    case model::RowDtype::kSignBitsMsbFirst: writer.WriteSignBits(true); break;
    case model::RowDtype::kSignBitsLsbFirst: writer.WriteSignBits(false); break;
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
  CHECK_EQ(reinterpret_cast<uintptr_t>(args.slots) % 16, 0U);
  const auto rows = static_cast<unsigned>(args.rows);
  if (args.width % 4 == 0 && args.x_stride % 4 == 0 &&
      reinterpret_cast<uintptr_t>(args.x) % 16 == 0) {
    FinishRowsKernel<4><<<rows, kThreads, 0, stream>>>(args);
  } else {
    FinishRowsKernel<1><<<rows, kThreads, 0, stream>>>(args);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace bouquet::rose::cuda
