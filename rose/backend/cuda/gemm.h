#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "rose/backend/cuda/cublas_lt.h"
#include "rose/backend/cuda/device_memory.h"
#include "rose/backend/cuda/gemm_table.h"
#include "rose/backend/cuda/graph.h"

namespace bouquet::rose::cuda {

/// out = x · weightᵀ + bias + residual, all bfloat16, sums in f32.
struct GemmOperands {
  const __nv_bfloat16* x = nullptr;         // [rows, in_features]
  const __nv_bfloat16* weight = nullptr;    // [out_features, in_features]
  const __nv_bfloat16* bias = nullptr;      // [out_features] or null
  const __nv_bfloat16* residual = nullptr;  // [rows, out_features], strides of out; may be out
  __nv_bfloat16* out = nullptr;             // [rows, out_features]
};

/// Matrix products through cuBLASLt, with one fixed workspace and one algorithm per shape: the one
/// measured as the fastest where there is a table for it, else the library's first suggestion.
/// Thread: one at a time, on one stream at a time.
class Gemm {
 public:
  /// `device`: its name, under which tables are kept.
  static Result<std::unique_ptr<Gemm>> Make(std::string device, DeviceAllocator& allocator);
  ~Gemm();

  /// Before the first product of a step.
  void BeginStep() { num_small_workspaces_ = 0; }
  void Run(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream);

  /// Every layer that ran so far, with each of these numbers of rows: takes the algorithms from the
  /// tables (built in, or kept from an earlier start), measures those that no table has, and keeps
  /// them for the next start. Needs device memory for the largest operands meanwhile, and does
  /// without measuring if there is none.
  void Tune(std::span<const int64_t> rows, cudaStream_t stream);

  /// What a step's products clear, each a part of its own, see Graph::Capture.
  ClearedMemory small_workspaces() const {
    return {small_workspaces_.get(), kSmallWorkspacesBytes};
  }

  /// "cublasLt 13.1.0": changes when the last bits may.
  std::string version() const;

 private:
  struct Plan;
  // Of algorithms that only count the tiles taken: they clear their counter before each product.
  static constexpr size_t kSmallWorkspaceBytes = 256;
  static constexpr size_t kSmallWorkspacesBytes = 1024 * kSmallWorkspaceBytes;

  Gemm() = default;
  Plan& Find(const GemmShape& shape);
  Result<std::unique_ptr<Plan>> MakePlan(const GemmShape& shape, int wanted) const;
  void Launch(const Plan& plan, const GemmShape& shape, const GemmOperands& operands,
              const cublasLtMatmulAlgo_t& algorithm, std::byte* workspace, size_t workspace_bytes,
              cudaStream_t stream) const;
  /// Bytes that the algorithm needs to compute `plan`; null when it cannot.
  std::optional<size_t> WorkspaceOf(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm) const;
  void ReadTables();
  void Measure(const GemmShape& shape, const std::vector<const __nv_bfloat16*>& weights,
               const GemmOperands& operands, cudaStream_t stream);

  std::unique_ptr<CublasLt> lt_;
  std::string device_;
  DeviceMemory workspace_;
  DeviceMemory small_workspaces_;
  size_t num_small_workspaces_ = 0;  // used in this step
  std::unique_ptr<GemmTable> table_;
  std::map<GemmShape, std::unique_ptr<Plan>> plans_;
  /// Layers by shape (rows 0), with the weights of some of them: products are measured over
  /// several, since in a step they come from device memory and not from a cache.
  std::map<GemmShape, std::vector<const __nv_bfloat16*>> layers_;
};

}  // namespace bouquet::rose::cuda
