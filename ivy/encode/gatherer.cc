#include "ivy/encode/gatherer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bouquet::ivy {

Gatherer::Gatherer(const std::vector<text::TokenSequence>& sequences, int64_t tokenize_us) {
  result_.timings.tokenize_us = tokenize_us;
  result_.token_counts.reserve(sequences.size());
  result_.truncated.reserve(sequences.size());
  for (const text::TokenSequence& sequence : sequences) {
    result_.token_counts.push_back(static_cast<int32_t>(sequence.ids.size()));
    result_.truncated.push_back(sequence.truncated() ? 1 : 0);
  }
  result_.statuses.resize(sequences.size());
}

Status Gatherer::Add(const ChunkRange& range, ChunkRows rows) {
  CHECK_EQ(rows.statuses.size(), range.count);
  CHECK_EQ(rows.values.size(), range.count * rows.dimensions);
  for (const Status& status : rows.statuses) {
    if (!status.ok() && status.code() != StatusCode::kInternal) {
      return status;
    }
  }
  const size_t num_inputs = result_.statuses.size();
  queue_us_ += rows.queue_us;
  step_us_ += rows.step_us;
  std::ranges::move(rows.statuses, result_.statuses.begin() + static_cast<ptrdiff_t>(range.first));
  if (range.count == num_inputs) {  // the one chunk there is: its rows are the result
    result_.dimensions = rows.dimensions;
    result_.values = std::move(rows.values);
    return {};
  }
  if (result_.values.empty()) {
    result_.dimensions = rows.dimensions;
    result_.values.resize(num_inputs * rows.dimensions);
  }
  if (rows.dimensions != result_.dimensions) {
    return Internal("two replicas gave rows of different widths");
  }
  std::ranges::copy(rows.values,
                    result_.values.begin() + static_cast<ptrdiff_t>(range.first * rows.dimensions));
  return {};
}

EncodedRows Gatherer::Take() {
  const auto num_inputs = static_cast<int64_t>(std::max<size_t>(result_.statuses.size(), 1));
  result_.timings.queue_us = queue_us_ / num_inputs;
  result_.timings.step_us = step_us_ / num_inputs;
  return std::move(result_);
}

}  // namespace bouquet::ivy
