#include "tulip/chunk_reply.h"

#include <algorithm>

#include "base/check.h"

namespace bouquet::tulip {

void ChunkReply::Open(size_t num_sequences, uint32_t dimensions, model::RowDtype dtype) {
  CHECK_EQ(remaining_.load(), -1);
  dimensions_ = dimensions;
  dtype_ = dtype;
  rows_.resize((num_sequences * row_bytes() + sizeof(float) - 1) / sizeof(float));
  outcomes_.resize(num_sequences);
  remaining_.store(static_cast<int64_t>(num_sequences), std::memory_order_release);
}

std::vector<float>& ChunkReply::rows() {
  CHECK(dtype_ == model::RowDtype::kFloat32);
  return rows_;
}

void ChunkReply::PutRow(uint32_t index, std::span<const std::byte> row) {
  CHECK_EQ(row.size(), row_bytes());
  const std::span<std::byte> target = std::as_writable_bytes(std::span(rows_));
  std::ranges::copy(row, target.subspan(index * row.size(), row.size()).begin());
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
