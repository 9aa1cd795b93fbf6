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

  /// `forward` is what a step runs; it must outlive this.
  StepSlot(const BatchLimits& limits, const Forward& forward);

  /// Copies a valid batch and resolves its output specs.
  void Fill(const Batch& batch);
  /// Starts the step; returns at once.
  void Start(Backend& backend);

  bool IsReady() const override { return ticket_->IsReady(); }
  Result<StepResult> Wait() override;

 private:
  int32_t width_;
  const Forward& forward_;
  std::vector<int32_t> token_ids_, token_type_ids_, positions_;
  std::vector<int32_t> sequence_offsets_, pooling_starts_, dimensions_;
  std::vector<uint8_t> normalize_;
  std::vector<float> rows_;            // [max_sequences, width]
  std::vector<RowStatus> statuses_;    // [max_sequences]
  std::vector<uint32_t> row_offsets_;  // 0, 1, 2, …: one dense row per sequence
  std::array<model::RowBlock, 1> blocks_;
  StepSlotMemory memory_;
  StepTicket* ticket_ = nullptr;
};

}  // namespace bouquet::rose
