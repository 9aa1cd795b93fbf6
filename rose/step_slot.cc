#include "rose/step_slot.h"

#include <algorithm>
#include <utility>

namespace bouquet::rose {

Result<std::unique_ptr<StepSlot>> StepSlot::Make(int32_t index, const BatchLimits& limits,
                                                 const Forward& forward, Backend& backend) {
  const size_t bytes = static_cast<size_t>(limits.max_rows) *
                       RowBytes(model::RowDtype::kFloat32, static_cast<size_t>(limits.width));
  ASSIGN_OR_RETURN(HostMemory results, backend.AllocateHost(RowsOffset(limits.max_rows) + bytes));
  std::unique_ptr<StepSlot> slot(new StepSlot(limits, forward, std::move(results)));
  slot->memory_.index = index;
  return slot;
}

StepSlot::StepSlot(const BatchLimits& limits, const Forward& forward, HostMemory results)
    : width_(limits.width), forward_(forward), results_(std::move(results)) {
  const auto tokens = static_cast<size_t>(limits.max_tokens);
  const auto sequences = static_cast<size_t>(limits.max_sequences);
  const auto rows = static_cast<size_t>(limits.max_rows);
  token_ids_.reserve(tokens);
  token_type_ids_.reserve(tokens);
  positions_.reserve(tokens);
  sequence_offsets_.reserve(sequences + 1);
  pooling_ranges_.reserve(rows);
  dimensions_.reserve(rows);
  row_dtypes_.reserve(rows);
  normalize_.reserve(rows);
  row_offsets_.reserve(sequences + 1);
  statuses_.reserve(sequences);
  memory_.statuses = reinterpret_cast<RowStatus*>(results_.get());
  memory_.rows = results_.get() + RowsOffset(limits.max_rows);
}

void StepSlot::Fill(const Batch& batch) {
  token_ids_ = batch.token_ids;
  token_type_ids_ = batch.token_type_ids;
  positions_ = batch.positions;
  sequence_offsets_ = batch.sequence_offsets;
  pooling_ranges_.clear();
  dimensions_.clear();
  row_dtypes_.clear();
  normalize_.clear();
  row_offsets_.assign(1, 0);
  int32_t longest = 0;
  auto span = batch.spans.begin();
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    const int32_t first = batch.sequence_offsets[i];
    const int32_t end = batch.sequence_offsets[i + 1];
    const int32_t num_spans = batch.num_spans_of(static_cast<int32_t>(i));
    if (num_spans == 0) {
      AddRow({first, first + batch.pooling_starts[i], end}, batch.outputs[i]);
    }
    for (const auto last = span + num_spans; span != last; ++span) {
      AddRow({first, first + span->begin, first + span->end}, batch.outputs[i]);
    }
    row_offsets_.push_back(static_cast<uint32_t>(pooling_ranges_.size()));
    longest = std::max(longest, end - first);
  }
  memory_.host = {.num_tokens = batch.num_tokens(),
                  .num_sequences = batch.num_sequences(),
                  .num_rows = static_cast<int32_t>(pooling_ranges_.size()),
                  .longest_sequence = longest,
                  .token_ids = token_ids_.data(),
                  .token_type_ids = token_type_ids_.empty() ? nullptr : token_type_ids_.data(),
                  .positions = positions_.data(),
                  .sequence_offsets = sequence_offsets_.data(),
                  .pooling_ranges = pooling_ranges_.data(),
                  .dimensions = dimensions_.data(),
                  .row_dtypes = row_dtypes_.data(),
                  .normalize = normalize_.data()};
}

void StepSlot::AddRow(const PoolingRange& range, const model::OutputSpec& output) {
  pooling_ranges_.push_back(range);
  dimensions_.push_back(output.dimensions == 0 ? width_ : static_cast<int32_t>(output.dimensions));
  row_dtypes_.push_back(output.dtype);
  normalize_.push_back(output.normalize ? 1 : 0);
}

void StepSlot::Start(Backend& backend) { ticket_ = backend.RunStep(memory_, forward_); }

Result<StepResult> StepSlot::Wait() {
  RETURN_IF_ERROR(ticket_->Wait());
  model::RowBlock& block = blocks_[0];
  block = {.head = model::Head::kDense,
           .widest_dtype = model::RowDtype::kFloat32,
           .width = static_cast<uint32_t>(width_),
           .offsets = row_offsets_,
           .data = {}};
  block.data = {memory_.rows, static_cast<size_t>(memory_.host.num_rows) * block.stride()};
  return StepResult{blocks_, StatusPerSequence()};
}

std::span<const RowStatus> StepSlot::StatusPerSequence() {
  const std::span<const RowStatus> rows(memory_.statuses, row_offsets_.back());
  const size_t sequences = row_offsets_.size() - 1;
  if (rows.size() == sequences) {
    return rows;
  }
  statuses_.clear();
  for (size_t i = 0; i < sequences; ++i) {
    const auto own = rows.subspan(row_offsets_[i], row_offsets_[i + 1] - row_offsets_[i]);
    statuses_.push_back(std::ranges::max(own));
  }
  return statuses_;
}

}  // namespace bouquet::rose
