#include "rose/backend/cpu/finish_rows.h"

#include <algorithm>
#include <cmath>

namespace bouquet::rose::cpu {
namespace {

constexpr double kSmallestLength = 1e-12;

/// Not finite exactly when an element is not: squares of float32 do not overflow float64.
double SumOfSquares(const float* x, int64_t count) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t lane = 0; lane < 8; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < count; ++i) {
    const double value = x[i];
    sums[0] += value * value;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void Scale(const float* x, int64_t count, double sum_of_squares, float* out) {
  const double scale = 1.0 / std::max(std::sqrt(sum_of_squares), kSmallestLength);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(x[i] * scale);
  }
}

}  // namespace

void NormalizeRow(float* x, int64_t width) { Scale(x, width, SumOfSquares(x, width), x); }

RowStatus FinishRow(const float* x, int64_t width, int64_t dimensions, bool normalize, float* out) {
  const double sum_of_squares = SumOfSquares(x, dimensions);
  if (!std::isfinite(sum_of_squares)) {
    std::fill(out, out + width, 0.0F);
    return RowStatus::kNotFinite;
  }
  if (normalize) {
    Scale(x, dimensions, sum_of_squares, out);
  } else {
    std::copy(x, x + dimensions, out);
  }
  std::fill(out + dimensions, out + width, 0.0F);
  return RowStatus::kOk;
}

}  // namespace bouquet::rose::cpu
