#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rose/backend/backend.h"
#include "rose/backend/cpu/attention.h"
#include "rose/backend/cpu/cpu_features.h"
#include "rose/backend/cpu/cpu_memory.h"
#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/worker_pool.h"

namespace bouquet::rose::cpu {

/// Every op on the processor, in float32 or bfloat16: checks shapes, shares the work out between
/// the pool's workers, calls the kernels of the chosen instruction set. One step is under way at a
/// time, its inputs and rows are read and written in place in the slot.
class CpuBackend final : public Backend {
 public:
  /// compute_dtype: kFloat32 or kBfloat16. threads ≥ 1, the step worker included.
  CpuBackend(Dtype compute_dtype, int32_t threads, Isa isa);
  ~CpuBackend() override;

  /// Binds thread i to processors[i], for good. Needs a processor for each thread. Error: kInternal
  /// with the system's reason.
  Status BindThreads(std::span<const int32_t> processors);

  std::string_view device() const override { return "cpu"; }
  std::string description() const override;
  std::string numerics() const override;
  Dtype compute_dtype() const override { return dtype_; }
  int32_t steps_under_way() const override { return 1; }

  Result<Tensor> Allocate(Dtype dtype, int64_t rows, int64_t cols) override;
  Result<HostMemory> AllocateHost(size_t bytes) override;
  Result<Tensor> Upload(const HostTensor& source, Dtype dtype) override;
  Result<std::unique_ptr<PackedWeight>> Pack(const LinearDesc& desc) override;
  Status FinishLoading(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) override;
  Status CopyIn(const void* source, TensorView target) override;
  Status CopyOut(TensorView source, void* target) override;

  StepTicket* RunStep(const StepSlotMemory& slot,
                      const std::function<void(const StepInputs& inputs)>& forward) override;

  void Embed(const EmbeddingDesc& desc, const StepInputs& inputs, TensorView out) override;
  void Norm(const NormDesc& desc, TensorView x, TensorView residual, TensorView sum,
            TensorView out) override;
  void Gemm(const GemmDesc& desc, TensorView x, TensorView out) override;
  void Attention(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
                 TensorView out) override;
  void Pool(const PoolingDesc& desc, const StepInputs& inputs, TensorView hidden,
            TensorView out) override;
  Result<std::unique_ptr<PackedWeight>> PackRows(const LinearDesc& desc) override;
  void GemmRows(const GemmDesc& desc, TensorView x, TensorView out) override;
  void NormalizeRows(TensorView x) override;
  void FinishRows(const StepInputs& inputs, TensorView x) override;

 private:
  class Ticket;

  void CheckInStep() const;
  void Normalise(const NormDesc& desc, TensorView x, TensorView residual, TensorView sum,
                 TensorView out, const Kernels& kernels);
  void Multiply(const GemmDesc& desc, TensorView x, TensorView out, const Kernels& kernels,
                Dtype dtype);
  float* RowScratch(int32_t worker) const {
    return row_scratch_.get() + worker * row_scratch_width_;
  }
  void NeedRowScratch(int64_t width);

  const Dtype dtype_;
  const Isa isa_;
  const Kernels& kernels_;      // of dtype_
  const Kernels& row_kernels_;  // float32, for rows after pooling
  bool threads_are_bound_ = false;
  int64_t max_rows_ = 0;      // of any activation
  int64_t widest_input_ = 0;  // in_features of any packed weight
  StepSlotMemory slot_;       // of the step under way
  std::function<void(const StepInputs&)> forward_;
  int64_t row_scratch_width_ = 0;
  AlignedArray<float> row_scratch_;  // [workers][row_scratch_width_]
  Tensor prologue_;                  // [max_rows_, widest_input_], for norms in front of a Gemm
  AttentionRunner attention_;
  std::unique_ptr<Ticket> ticket_;
  WorkerPool pool_;  // last: its threads end before what they use
};

}  // namespace bouquet::rose::cpu
