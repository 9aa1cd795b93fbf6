#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/status.h"
#include "rose/backend/cuda/cublas_lt.h"
#include "rose/backend/cuda/device_memory.h"

namespace bouquet::rose::cuda {

/// Everything that the choice of an algorithm depends on.
struct GemmShape {
  int64_t rows = 0;  // M: tokens
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t x_stride = 0;  // elements from row to row
  int64_t weight_stride = 0;
  int64_t out_stride = 0;
  bool has_bias = false;
  bool adds_residual = false;

  auto operator<=>(const GemmShape&) const = default;
};

/// out = x · weightᵀ + bias + residual, all bfloat16, sums in f32.
struct GemmOperands {
  const __nv_bfloat16* x = nullptr;         // [rows, in_features]
  const __nv_bfloat16* weight = nullptr;    // [out_features, in_features]
  const __nv_bfloat16* bias = nullptr;      // [out_features] or null
  const __nv_bfloat16* residual = nullptr;  // [rows, out_features], strides of out; may be out
  __nv_bfloat16* out = nullptr;             // [rows, out_features]
};

/// Matrix products through cuBLASLt, with one fixed workspace and one algorithm per shape. Thread:
/// one at a time, on one stream at a time.
class Gemm {
 public:
  static Result<std::unique_ptr<Gemm>> Make(DeviceAllocator& allocator);
  ~Gemm();

  /// Finds the algorithm of a shape, so that Run of it looks up only. Error: kUnimplemented when
  /// the library has none.
  Status Prepare(const GemmShape& shape);
  void Run(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream);

  /// "cublasLt 13.1.0": changes when the last bits may.
  std::string version() const;

 private:
  struct Plan;
  Gemm() = default;
  Result<Plan*> Find(const GemmShape& shape);
  Result<std::unique_ptr<Plan>> MakePlan(const GemmShape& shape) const;

  std::unique_ptr<CublasLt> lt_;
  DeviceMemory workspace_;
  std::map<GemmShape, std::unique_ptr<Plan>> plans_;
};

}  // namespace bouquet::rose::cuda
