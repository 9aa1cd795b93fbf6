#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rose/tensor/dtype.h"

namespace bouquet::rose {

/// How far a result may be from the double-precision loop. `scale` is the size of what was added
/// up: for a sum of products √n times the size of a product, because rounding errors of independent
/// signs grow like that.
///
/// float32: 2⁻²⁴ per rounding and a few roundings per sum; 16 of them leave room for the worst of
/// thousands of elements. bfloat16: inputs are rounded before the reference sees them, so what is
/// left is float32 sums and one rounding of the result (2⁻⁸ of its size), or a second one where an
/// op keeps an intermediate value in bfloat16.
inline double Tolerance(Dtype dtype, double expected, double scale, int roundings = 1) {
  const double sums = 0x1p-24 * 16 * std::max(scale, 1e-30);
  if (dtype == Dtype::kFloat32) {
    return sums + 0x1p-24 * 4 * std::abs(expected);
  }
  return 2 * sums + 0x1p-8 * roundings * std::max(std::abs(expected), 1e-30);
}

/// The same after an activation: its fit's own error, absolute for values up to 1 (lane_math.h).
inline constexpr double kActivationError = 3e-7;

}  // namespace bouquet::rose
