#pragma once

#include <cstdint>

#include "rose/step_result.h"

namespace bouquet::rose::cpu {

/// Scales x [width] to unit length in place: x / max(‖x‖₂, 1e-12). Sums in float64, so that no
/// float32 row overflows.
void NormalizeRow(float* x, int64_t width);

/// The first `dimensions` of x [width], scaled to unit length if `normalize`, into out [width];
/// what is behind them becomes 0. A row with a NaN or an infinity becomes zeros and kNotFinite.
RowStatus FinishRow(const float* x, int64_t width, int64_t dimensions, bool normalize, float* out);

}  // namespace bouquet::rose::cpu
