#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "rose/backend/op_desc.h"
#include "rose/graph_cache.h"
#include "rose/step_grid.h"
#include "rose/step_result.h"
#include "rose/tensor/tensor.h"

namespace bouquet::rose {

/// Host memory that a device copies to and from without a detour.
using HostMemory = std::unique_ptr<std::byte[], void (*)(std::byte*)>;

/// Where the rows start in a block that holds statuses first, so that one copy brings both: room
/// for as many statuses as a padded step may have, and aligned.
constexpr size_t RowsOffset(int32_t max_rows) {
  constexpr uint32_t kAlignment = 256;
  return std::max(std::bit_ceil(static_cast<uint32_t>(max_rows)), kAlignment);
}

/// Where a step's inputs are copied from and its results copied to: one per step under way, owned
/// by the engine.
struct StepSlotMemory {
  int32_t index = 0;              // 0 .. steps_under_way - 1
  StepInputs host;                // pointers into host memory that the slot owns
  RowStatus* statuses = nullptr;  // [num_rows] host, written by the step
  /// [num_rows, RowBytes(kFloat32, width)] host, likewise; best at RowsOffset of `statuses`.
  std::byte* rows = nullptr;
};

/// A step that a backend has started.
class StepTicket {
 public:
  virtual ~StepTicket() = default;
  virtual bool IsReady() const = 0;
  virtual Status Wait() = 0;
};

/// Everything a model may ask of a device. One step worker (a stream) runs steps in order; ops may
/// be called only inside the function given to RunStep, and only allocation and loading return
/// errors: a shape error is a bug and CHECKs. Activations are in `compute_dtype()`; norm gains and
/// biases, pooled rows and everything after them are float32.
class Backend {
 public:
  virtual ~Backend() = default;

  // --- facts ---
  virtual std::string_view device() const = 0;  // "cpu"
  virtual std::string description() const = 0;  // "cpu, 2 threads, avx512"
  virtual std::string numerics()
      const = 0;  // kernels and library versions that decide the last bits
  virtual Dtype compute_dtype() const = 0;      // of weights and activations
  virtual int32_t steps_under_way() const = 0;  // 1 on a CPU
  virtual bool captures_steps() const { return false; }
  /// Of a device that captures steps. Thread: any.
  virtual GraphCounts graph_counts() const { return {}; }

  // --- loading ---
  /// What a step of these sizes may become inside, for the size of activations: a backend that pads
  /// steps rounds up.
  virtual StepSizes LargestStep(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) const {
    return {.num_tokens = max_tokens,
            .num_sequences = max_sequences,
            .num_rows = max_rows,
            .longest_sequence = max_tokens};
  }
  /// Uninitialised [rows, cols]; the rows are contiguous.
  virtual Result<Tensor> Allocate(Dtype dtype, int64_t rows, int64_t cols) = 0;
  /// For what a step's results are copied to.
  virtual Result<HostMemory> AllocateHost(size_t bytes) = 0;
  /// A copy of `source` converted to `dtype` (embedding tables: compute dtype; norm weights:
  /// float32). A backend that reads host memory may keep pointing at it when no conversion is
  /// needed, hence `source` must outlive the result.
  virtual Result<Tensor> Upload(const HostTensor& source, Dtype dtype) = 0;
  virtual Result<std::unique_ptr<PackedWeight>> Pack(const LinearDesc& desc) = 0;
  /// All elements of a contiguous tensor, between steps: for tests and tools.
  virtual Status CopyIn(const void* source, TensorView target) = 0;
  virtual Status CopyOut(TensorView source, void* target) = 0;
  /// Called once when the model is built: no further Pack or Upload; the three bound every later
  /// step. Sizes scratch memory from what was packed, so that steps do not allocate.
  virtual Status FinishLoading(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) = 0;

  /// Called once, after the first step, which has met every layer: what is chosen by measuring.
  virtual Status FinishWarmUp() { return {}; }

  // --- a step ---
  /// Starts: inputs to the device, `forward(inputs)` with device pointers, results to `slot`.
  /// Returns at once. `forward` ends with FinishRows; it is copied, so let it capture no more than
  /// two pointers, which a std::function holds without allocating. The ticket belongs to the
  /// backend and is valid until the slot's next step.
  virtual StepTicket* RunStep(const StepSlotMemory& slot,
                              const std::function<void(const StepInputs& inputs)>& forward) = 0;

  // --- ops, in the order a forward pass meets them ---
  /// out: [num_tokens, hidden_size].
  virtual void Embed(const EmbeddingDesc& desc, const StepInputs& inputs, TensorView out) = 0;
  virtual void Norm(const NormDesc& desc, TensorView x, TensorView residual, TensorView sum,
                    TensorView out) = 0;
  /// x: [M, in_features]; out: [M, out_features].
  virtual void Gemm(const GemmDesc& desc, TensorView x, TensorView out) = 0;
  /// qkv: [num_tokens, (num_heads + 2 · num_kv_heads) · head_dim], queries first, then keys, then
  /// values; may be overwritten. out: [num_tokens, num_heads · head_dim].
  virtual void Attention(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
                         TensorView out) = 0;
  /// hidden: [num_tokens, hidden_size]; out: [num_rows, modes · hidden_size] float32.
  virtual void Pool(const PoolingDesc& desc, const StepInputs& inputs, TensorView hidden,
                    TensorView out) = 0;
  /// Gemm for the few float32 rows after pooling (Dense modules): weights packed with PackRows. x,
  /// out float32.
  virtual Result<std::unique_ptr<PackedWeight>> PackRows(const LinearDesc& desc) = 0;
  virtual void GemmRows(const GemmDesc& desc, TensorView x, TensorView out) = 0;
  /// Scales each row to unit length: x / max(‖x‖₂, 1e-12). In place. x: [num_rows, width] float32.
  virtual void NormalizeRows(TensorView x) = 0;
  /// The last op of a step: cuts row i to dimensions[i], checks that every value is finite, scales
  /// to unit length if normalize[i], writes it as row_dtypes[i] at the front of row i of the slot,
  /// with zeros behind it, and its status. A row that is not finite is zeros. x: [num_rows, width]
  /// float32.
  virtual void FinishRows(const StepInputs& inputs, TensorView x) = 0;
};

}  // namespace bouquet::rose
