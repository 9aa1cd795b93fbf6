#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/output_spec.h"

namespace bouquet::model {

/// The rows of one head for all sequences of a step. Each lies at the front of a slot that is wide
/// enough for every row of the model: what it holds is what its sequence's OutputSpec asked for,
/// RowBytes(dtype, dimensions) bytes, and zeros follow. A view: the owner says how long it lives
/// (rose/lazy_tensor.h).
struct RowBlock {
  Head head = Head::kDense;
  // Of a slot: not of any row in it.
  RowDtype widest_dtype = RowDtype::kFloat32;
  uint32_t width = 0;
  /// [num_sequences + 1]: rows offsets[i] .. offsets[i + 1] belong to sequence i: one, or one per
  /// span.
  std::span<const uint32_t> offsets;
  /// [num_rows, stride()], host order.
  std::span<const std::byte> data;

  /// Bytes from one row to the next.
  size_t stride() const { return RowBytes(widest_dtype, width); }
};

}  // namespace bouquet::model
