#pragma once

#include <cstddef>
#include <cstdint>

#include "rose/backend/op_desc.h"
#include "rose/step_grid.h"

namespace bouquet::rose::cuda {

/// Where each input of a step lies in one block, so that a single copy takes all of them. The
/// offsets depend on the padded sizes only: captured launches find every array where it was.
class InputLayout {
 public:
  explicit InputLayout(const StepSizes& padded);

  size_t bytes() const { return bytes_; }

  /// Fills `block` (host, `bytes`) with the inputs of a real step. What pads: token 0 at position
  /// 0, sequences without tokens at the end, rows pooled from no token, with one float32 dimension
  /// that is not normalised.
  void Pack(const StepInputs& inputs, std::byte* block) const;

  /// The arrays of a block, with the padded sizes.
  StepInputs At(const std::byte* block) const;

 private:
  StepSizes padded_;
  size_t token_ids_ = 0, positions_ = 0, token_type_ids_ = 0;
  size_t sequence_offsets_ = 0;
  size_t pooling_ranges_ = 0, dimensions_ = 0, row_dtypes_ = 0, normalize_ = 0;
  size_t bytes_ = 0;
};

}  // namespace bouquet::rose::cuda
