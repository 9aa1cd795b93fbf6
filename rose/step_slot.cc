#include "rose/step_slot.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace bouquet::rose {

Result<std::unique_ptr<StepSlot>> StepSlot::Make(int32_t index, const BatchLimits& limits,
                                                 const Forward& forward, Backend& backend) {
  const size_t rows = static_cast<size_t>(limits.max_sequences) * static_cast<size_t>(limits.width);
  ASSIGN_OR_RETURN(HostMemory results,
                   backend.AllocateHost(RowsOffset(limits.max_sequences) + rows * sizeof(float)));
  std::unique_ptr<StepSlot> slot(new StepSlot(limits, forward, std::move(results)));
  slot->memory_.index = index;
  return slot;
}

StepSlot::StepSlot(const BatchLimits& limits, const Forward& forward, HostMemory results)
    : width_(limits.width), forward_(forward), results_(std::move(results)) {
  const auto tokens = static_cast<size_t>(limits.max_tokens);
  const auto sequences = static_cast<size_t>(limits.max_sequences);
  token_ids_.reserve(tokens);
  token_type_ids_.reserve(tokens);
  positions_.reserve(tokens);
  sequence_offsets_.reserve(sequences + 1);
  pooling_starts_.reserve(sequences);
  dimensions_.reserve(sequences);
  normalize_.reserve(sequences);
  row_offsets_.resize(sequences + 1);
  std::iota(row_offsets_.begin(), row_offsets_.end(), 0U);
  memory_.statuses = reinterpret_cast<RowStatus*>(results_.get());
  memory_.rows = reinterpret_cast<float*>(results_.get() + RowsOffset(limits.max_sequences));
}

void StepSlot::Fill(const Batch& batch) {
  token_ids_ = batch.token_ids;
  token_type_ids_ = batch.token_type_ids;
  positions_ = batch.positions;
  sequence_offsets_ = batch.sequence_offsets;
  pooling_starts_ = batch.pooling_starts;
  dimensions_.clear();
  normalize_.clear();
  int32_t longest = 0;
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    const model::OutputSpec& output = batch.outputs[i];
    dimensions_.push_back(output.dimensions == 0 ? width_
                                                 : static_cast<int32_t>(output.dimensions));
    normalize_.push_back(output.normalize ? 1 : 0);
    longest = std::max(longest, sequence_offsets_[i + 1] - sequence_offsets_[i]);
  }
  memory_.host = {.num_tokens = batch.num_tokens(),
                  .num_sequences = batch.num_sequences(),
                  .longest_sequence = longest,
                  .token_ids = token_ids_.data(),
                  .token_type_ids = token_type_ids_.empty() ? nullptr : token_type_ids_.data(),
                  .positions = positions_.data(),
                  .sequence_offsets = sequence_offsets_.data(),
                  .pooling_starts = pooling_starts_.data(),
                  .dimensions = dimensions_.data(),
                  .normalize = normalize_.data()};
}

void StepSlot::Start(Backend& backend) { ticket_ = backend.RunStep(memory_, forward_); }

Result<StepResult> StepSlot::Wait() {
  RETURN_IF_ERROR(ticket_->Wait());
  const auto sequences = static_cast<size_t>(memory_.host.num_sequences);
  blocks_[0] = {
      .head = model::Head::kDense,
      .dtype = model::RowDtype::kFloat32,
      .width = static_cast<uint32_t>(width_),
      .offsets = std::span(row_offsets_).first(sequences + 1),
      .data = std::as_bytes(std::span(memory_.rows, sequences * static_cast<size_t>(width_)))};
  return StepResult{blocks_, std::span(memory_.statuses, sequences)};
}

}  // namespace bouquet::rose
