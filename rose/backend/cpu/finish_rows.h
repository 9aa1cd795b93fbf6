#pragma once

#include <cstddef>
#include <cstdint>

#include "model/output_spec.h"
#include "rose/step_result.h"

namespace bouquet::rose::cpu {

/// Scales x [width] to unit length in place: x / max(‖x‖₂, 1e-12). Sums in float64, so that no
/// float32 row overflows.
void NormalizeRow(float* x, int64_t width);

/// What is wanted of one row.
struct RowFormat {
  int64_t dimensions = 0;
  bool normalize = false;
  model::RowDtype dtype = model::RowDtype::kFloat32;
};

/// The first `dimensions` of x [width], scaled to unit length if `normalize`, as `dtype` to the
/// front of `slot` [RowBytes(kFloat32, width)]; what is behind them becomes 0. A row with a NaN or
/// an infinity becomes zeros and kNotFinite.
RowStatus FinishRow(const float* x, int64_t width, const RowFormat& format, std::byte* slot);

}  // namespace bouquet::rose::cpu
