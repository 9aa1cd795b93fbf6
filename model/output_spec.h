#pragma once

#include <cstddef>
#include <cstdint>

namespace bouquet::model {

/// What turns hidden states into rows. One value per kind of result that a sequence can ask for.
enum class Head : uint8_t {
  kDense,  // the model folder's own pipeline: pooling, dense layers, normalisation; one row a
           // sequence
};

/// How a row's values are written. A quantised row is made from the float32 row that the same
/// request would give, that is after cutting and, if asked for, scaling to unit length, element by
/// element (the rules of pplx-embed's st_quantize.py and of its API).
enum class RowDtype : uint8_t {
  kFloat32,
  kTanhInt8,  // clamp(round half to even(tanh(x) · 127), −128, 127): made for rows that are
              // not of unit length, of which it would use a few values only
  kSignBitsMsbFirst,  // a bit per value, 1 where x ≥ 0 (−0 too); the first is bit 7 of byte 0
  kSignBitsLsbFirst,  // the same, and the first is bit 0 of byte 0
};

constexpr bool IsSignBits(RowDtype dtype) {
  return dtype == RowDtype::kSignBitsMsbFirst || dtype == RowDtype::kSignBitsLsbFirst;
}

/// Of a row of `width` values; a row of sign bits has a multiple of 8.
constexpr size_t RowBytes(RowDtype dtype, size_t width) {
  if (IsSignBits(dtype)) {
    return width / 8;
  }
  return dtype == RowDtype::kTanhInt8 ? width : width * sizeof(float);
}

/// What one sequence asks for. Travels with it from the parser to the device, where every row of a
/// step may differ.
struct OutputSpec {
  Head head = Head::kDense;
  RowDtype dtype = RowDtype::kFloat32;
  /// Width wanted, 1..the model's width; 0 is the full width. Rows are cut first, normalised after
  /// and written in `dtype` last.
  uint32_t dimensions = 0;
  /// Scale the (cut) row to unit length. Absent fields of a dialect are resolved before this is
  /// built.
  bool normalize = true;

  bool operator==(const OutputSpec&) const = default;
};

}  // namespace bouquet::model
