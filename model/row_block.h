#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/output_spec.h"

namespace bouquet::model {

/// The rows of one head for all sequences of a step. A view: the owner says how long it lives
/// (rose/lazy_tensor.h).
struct RowBlock {
  Head head = Head::kDense;
  RowDtype dtype = RowDtype::kFloat32;
  /// Elements from one row to the next: the widest row. A sequence that asked for fewer dimensions
  /// fills the front.
  uint32_t width = 0;
  /// [num_sequences + 1]: rows offsets[i] .. offsets[i + 1] belong to sequence i.
  std::span<const uint32_t> offsets;
  /// [num_rows, width] of `dtype`, row-major, host order.
  std::span<const std::byte> data;
};

}  // namespace bouquet::model
