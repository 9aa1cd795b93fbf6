#pragma once

#include <cstddef>
#include <cstdint>

namespace bouquet::model {

/// What turns hidden states into rows. One value per kind of result that a sequence can ask for.
enum class Head : uint8_t {
  kDense,  // the model folder's own pipeline: pooling, dense layers, normalisation; one row a
           // sequence
};

enum class RowDtype : uint8_t {
  kFloat32,
};

constexpr size_t RowDtypeBytes(RowDtype /*dtype*/) { return sizeof(float); }

/// What one sequence asks for. Travels with it from the parser to the device, where every row of a
/// step may differ.
struct OutputSpec {
  Head head = Head::kDense;
  RowDtype dtype = RowDtype::kFloat32;
  /// Width wanted, 1..the model's width; 0 is the full width. Rows are cut first and normalised
  /// after.
  uint32_t dimensions = 0;
  /// Scale the (cut) row to unit length. Absent fields of a dialect are resolved before this is
  /// built.
  bool normalize = true;

  bool operator==(const OutputSpec&) const = default;
};

}  // namespace bouquet::model
