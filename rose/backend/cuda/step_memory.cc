#include "rose/backend/cuda/step_memory.h"

#include <algorithm>

namespace bouquet::rose::cuda {
namespace {

constexpr size_t kAlignment = 16;

/// Copies `count` values and repeats `filler` up to `padded`.
template <class T>
void PackArray(const T* source, int32_t count, int32_t padded, T filler, std::byte* target) {
  T* out = reinterpret_cast<T*>(target);
  std::copy(source, source + count, out);
  std::fill(out + count, out + padded, filler);
}

}  // namespace

InputLayout::InputLayout(const StepSizes& padded) : padded_(padded) {
  const auto take = [this](int32_t count, size_t element) {
    const size_t offset = bytes_;
    bytes_ += (static_cast<size_t>(count) * element + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  };
  token_ids_ = take(padded.num_tokens, sizeof(int32_t));
  positions_ = take(padded.num_tokens, sizeof(int32_t));
  if (padded.has_token_types) {
    token_type_ids_ = take(padded.num_tokens, sizeof(int32_t));
  }
  sequence_offsets_ = take(padded.num_sequences + 1, sizeof(int32_t));
  pooling_ranges_ = take(padded.num_rows, sizeof(PoolingRange));
  dimensions_ = take(padded.num_rows, sizeof(int32_t));
  row_dtypes_ = take(padded.num_rows, sizeof(model::RowDtype));
  normalize_ = take(padded.num_rows, sizeof(uint8_t));
}

void InputLayout::Pack(const StepInputs& inputs, std::byte* block) const {
  const int32_t tokens = inputs.num_tokens;
  const int32_t sequences = inputs.num_sequences;
  const int32_t rows = inputs.num_rows;
  PackArray(inputs.token_ids, tokens, padded_.num_tokens, 0, block + token_ids_);
  PackArray(inputs.positions, tokens, padded_.num_tokens, 0, block + positions_);
  if (padded_.has_token_types) {
    PackArray(inputs.token_type_ids, tokens, padded_.num_tokens, 0, block + token_type_ids_);
  }
  PackArray(inputs.sequence_offsets, sequences + 1, padded_.num_sequences + 1, tokens,
            block + sequence_offsets_);
  PackArray(inputs.pooling_ranges, rows, padded_.num_rows, PoolingRange(), block + pooling_ranges_);
  PackArray(inputs.dimensions, rows, padded_.num_rows, 1, block + dimensions_);
  PackArray(inputs.row_dtypes, rows, padded_.num_rows, model::RowDtype::kFloat32,
            block + row_dtypes_);
  PackArray<uint8_t>(inputs.normalize, rows, padded_.num_rows, 0, block + normalize_);
}

StepInputs InputLayout::At(const std::byte* block) const {
  const auto array = [block](size_t offset) {
    return reinterpret_cast<const int32_t*>(block + offset);
  };
  return {.num_tokens = padded_.num_tokens,
          .num_sequences = padded_.num_sequences,
          .num_rows = padded_.num_rows,
          .longest_sequence = padded_.longest_sequence,
          .token_ids = array(token_ids_),
          .token_type_ids = padded_.has_token_types ? array(token_type_ids_) : nullptr,
          .positions = array(positions_),
          .sequence_offsets = array(sequence_offsets_),
          .pooling_ranges = reinterpret_cast<const PoolingRange*>(block + pooling_ranges_),
          .dimensions = array(dimensions_),
          .row_dtypes = reinterpret_cast<const model::RowDtype*>(block + row_dtypes_),
          .normalize = reinterpret_cast<const uint8_t*>(block + normalize_)};
}

}  // namespace bouquet::rose::cuda
