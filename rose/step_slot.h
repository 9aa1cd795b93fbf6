#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/row_block.h"
#include "rose/backend/backend.h"
#include "rose/batch.h"
#include "rose/lazy_tensor.h"

namespace bouquet::rose {

/// One place of the engine's ring: the inputs of a step as it was started, and room for its rows.
/// Everything is allocated for the largest step at construction. Life of a step: Fill (serving
/// loop), Start (serving loop), Wait (completer).
class StepSlot final : public LazyTensor::Source {
 public:
  using Forward = std::function<void(const StepInputs& inputs)>;

  /// The `index`-th of the ring. `forward` is what a step runs; it and `backend` must outlive this.
  /// Error: kResourceExhausted.
  static Result<std::unique_ptr<StepSlot>> Make(int32_t index, const BatchLimits& limits,
                                                const Forward& forward, Backend& backend);

  /// Copies a valid batch and resolves its output specs, one per row.
  void Fill(const Batch& batch);
  /// Starts the step; returns at once.
  void Start(Backend& backend);

  bool IsReady() const override { return ticket_->IsReady(); }
  Result<StepResult> Wait() override;

 private:
  StepSlot(const BatchLimits& limits, const Forward& forward, HostMemory results);
  void AddRow(const PoolingRange& range, const model::OutputSpec& output);
  std::span<const RowStatus> StatusPerSequence();

  int32_t width_;
  const Forward& forward_;
  std::vector<int32_t> token_ids_, token_type_ids_, positions_;
  std::vector<int32_t> sequence_offsets_;
  std::vector<PoolingRange> pooling_ranges_;
  std::vector<int32_t> dimensions_;
  std::vector<model::RowDtype> row_dtypes_;
  std::vector<uint8_t> normalize_;
  HostMemory results_;                 // statuses [max_rows], rows [max_rows, width] float32
  std::vector<uint32_t> row_offsets_;  // [num_sequences + 1]
  std::vector<RowStatus> statuses_;    // [num_sequences], when there are more rows
  std::array<model::RowBlock, 1> blocks_;
  StepSlotMemory memory_;
  StepTicket* ticket_ = nullptr;
};

}  // namespace bouquet::rose
