#include "tulip/chunk_reply.h"

#include <algorithm>

#include "base/check.h"

namespace bouquet::tulip {

void ChunkReply::Open(size_t num_sequences, uint32_t dimensions) {
  CHECK_EQ(remaining_.load(), -1);
  dimensions_ = dimensions;
  rows_.resize(num_sequences * dimensions);
  outcomes_.resize(num_sequences);
  remaining_.store(static_cast<int64_t>(num_sequences), std::memory_order_release);
}

void ChunkReply::PutRow(uint32_t index, std::span<const float> row) {
  CHECK_EQ(row.size(), size_t{dimensions_});
  std::ranges::copy(row, rows_.begin() + static_cast<ptrdiff_t>(size_t{index} * dimensions_));
}

void ChunkReply::Finish(uint32_t index, Outcome outcome) {
  outcomes_[index] = std::move(outcome);
  const int64_t before = remaining_.fetch_sub(1, std::memory_order_acq_rel);
  CHECK_LT(0, before);  // nothing is answered twice
  if (before == 1) {
    OnComplete();
  }
}

}  // namespace bouquet::tulip
