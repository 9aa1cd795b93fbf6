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

double ScaleOf(double sum_of_squares) {
  return 1.0 / std::max(std::sqrt(sum_of_squares), kSmallestLength);
}

float Scaled(float x, double scale) { return static_cast<float>(x * scale); }

/// In float64, so that devices agree: their tanh differ far less than 127 of them are from a half.
std::byte TanhInt8(float x) {
  const double rounded = std::nearbyint(std::tanh(static_cast<double>(x)) * 127.0);
  return static_cast<std::byte>(static_cast<int8_t>(std::clamp(rounded, -128.0, 127.0)));
}

/// The signs of the eight values from x on.
std::byte SignBits(const float* x, double scale, bool msb_first) {
  unsigned bits = 0;
  for (int i = 0; i < 8; ++i) {
    const unsigned bit = Scaled(x[i], scale) >= 0 ? 1 : 0;
    bits |= bit << (msb_first ? 7 - i : i);
  }
  return static_cast<std::byte>(bits);
}

void Encode(const float* x, int64_t count, double scale, model::RowDtype dtype, std::byte* out) {
  switch (dtype) {
    case model::RowDtype::kFloat32: {
      auto* values = reinterpret_cast<float*>(out);
      for (int64_t i = 0; i < count; ++i) {
        values[i] = Scaled(x[i], scale);
      }
      return;
    }
    case model::RowDtype::kTanhInt8:
      for (int64_t i = 0; i < count; ++i) {
        out[i] = TanhInt8(Scaled(x[i], scale));
      }
      return;
    case model::RowDtype::kSignBitsMsbFirst:
    case model::RowDtype::kSignBitsLsbFirst:
      for (int64_t i = 0; i < count; i += 8) {
        out[i / 8] = SignBits(x + i, scale, dtype == model::RowDtype::kSignBitsMsbFirst);
      }
      return;
  }
}

}  // namespace

void NormalizeRow(float* x, int64_t width) {
  const double scale = ScaleOf(SumOfSquares(x, width));
  for (int64_t i = 0; i < width; ++i) {
    x[i] = Scaled(x[i], scale);
  }
}

RowStatus FinishRow(const float* x, int64_t width, const RowFormat& format, std::byte* slot) {
  std::byte* const end = slot + RowBytes(model::RowDtype::kFloat32, static_cast<size_t>(width));
  const double sum_of_squares = SumOfSquares(x, format.dimensions);
  if (!std::isfinite(sum_of_squares)) {
    std::fill(slot, end, std::byte{0});
    return RowStatus::kNotFinite;
  }
  Encode(x, format.dimensions, format.normalize ? ScaleOf(sum_of_squares) : 1.0, format.dtype,
         slot);
  std::fill(slot + RowBytes(format.dtype, static_cast<size_t>(format.dimensions)), end,
            std::byte{0});
  return RowStatus::kOk;
}

}  // namespace bouquet::rose::cpu
