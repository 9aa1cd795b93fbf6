#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "rose/backend/backend.h"
#include "rose/backend/cuda/attention/ragged_attention.h"
#include "rose/backend/cuda/device.h"
#include "rose/backend/cuda/device_memory.h"
#include "rose/backend/cuda/event.h"
#include "rose/backend/cuda/gemm.h"
#include "rose/backend/cuda/graph.h"
#include "rose/backend/cuda/packed_matrix.h"
#include "rose/backend/cuda/pinned_memory.h"
#include "rose/backend/cuda/stream.h"
#include "rose/backend/cuda/weight_upload.h"
#include "rose/backend/factory.h"
#include "rose/graph_cache.h"

namespace bouquet::rose::cuda {

/// The backend for NVIDIA Hopper: bfloat16, every step one copy in, one graph (or the same launches
/// one by one), one copy out, all on one stream. Steps are padded to the sizes of rose/step_grid.h
/// whether captured or not, so a replay gives the bits of an eager run.
///
/// Memory: device inputs, activations and results exist once, since steps run in order; the host
/// side of inputs exists once per step under way, and is filled again only after that step's event.
class CudaBackend final : public Backend {
 public:
  /// Error: what OpenDevice says, kInvalidArgument for options, kResourceExhausted, kNotFound for
  /// cuBLASLt.
  static Result<std::unique_ptr<Backend>> Make(const BackendOptions& options);
  ~CudaBackend() override;

  std::string_view device() const override { return device_name_; }
  std::string description() const override;
  std::string numerics() const override;
  Dtype compute_dtype() const override { return Dtype::kBfloat16; }
  int32_t steps_under_way() const override { return kStepsUnderWay; }
  bool captures_steps() const override { return options_.graphs != GraphMode::kOff; }
  GraphCounts graph_counts() const override;

  StepSizes LargestStep(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) const override;
  Result<Tensor> Allocate(Dtype dtype, int64_t rows, int64_t cols) override;
  Result<HostMemory> AllocateHost(size_t bytes) override;
  Result<Tensor> Upload(const HostTensor& source, Dtype dtype) override;
  Result<std::unique_ptr<PackedWeight>> Pack(const LinearDesc& desc) override;
  Status FinishLoading(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) override;
  Status FinishWarmUp() override;
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
  static constexpr int32_t kStepsUnderWay = 2;
  class Ticket;
  using Forward = std::function<void(const StepInputs& inputs)>;

  CudaBackend(const BackendOptions& options, DeviceFacts device);
  Status Start();
  Status NeedUpload();

  /// Calls `forward` with ops going to `current_`.
  void RunForward(const StepInputs& inputs, const Forward& forward);
  /// Error: the step could not be captured; nothing ran.
  Result<Graph> Capture(const StepInputs& inputs, const Forward& forward);
  void Launch(const StepSizes& padded, const StepInputs& inputs, const Forward& forward);
  void CopyResults(const StepSlotMemory& slot);

  /// [rows, cols] bfloat16 that lasts until the next use. Allocated by the first step that needs
  /// it, for the largest; no memory fails that step, and the result is empty.
  TensorView Scratch(Tensor* scratch, int64_t rows, int64_t cols);
  /// Of this step's tokens, [num_tokens, head_dim / 2]; computed for the first layer that asks.
  /// Memory as for Scratch; null without.
  const float2* Rotations(const AttentionDesc& desc, const StepInputs& inputs);
  void RotateHeads(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv);
  /// Error: kUnimplemented for a layer that no kernel serves. A step that meets one fails with it,
  /// which the first step, while loading, does for every layer.
  Status CheckServed(const AttentionShape& shape, bool rotates) const;
  bool CanNormalise(int64_t width);
  void CheckInStep() const;

  BackendOptions options_;
  DeviceFacts device_;
  std::string device_name_;
  DeviceAllocator allocator_;
  Stream stream_;
  Stream capture_stream_;
  cudaStream_t current_ = nullptr;  // where ops go now; null outside a step
  std::unique_ptr<class Gemm> gemm_;
  std::unique_ptr<RaggedAttention> attention_;
  std::unique_ptr<WeightUpload> upload_;  // while loading

  StepSizes largest_;  // padded
  int32_t max_rows_ = 0;
  DeviceMemory inputs_;
  DeviceMemory results_;  // statuses, then rows at RowsOffset
  int64_t result_width_ = 0;
  bool has_plan_ = false;  // of attention, in this step
  bool is_warm_ = false;   // scratch memory is there, so that a step can be captured
  Tensor normed_, product_;
  struct Rotation {
    float theta = 0;
    int32_t head_dim = 0;
    Tensor values;
    int64_t step = 0;  // that the values belong to
  };
  std::vector<Rotation> rotations_;
  int64_t step_ = 0;  // counts forward passes, captured ones too
  Status step_status_;
  std::array<std::unique_ptr<Ticket>, kStepsUnderWay> tickets_;
  GraphCache<Graph> graphs_;
};

}  // namespace bouquet::rose::cuda
