#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace bouquet::bench {

/// Vectors that are known to be right.
struct ReferenceRows {
  size_t dimensions = 0;
  std::vector<float> values;  // [num_rows, dimensions]

  size_t num_rows() const { return dimensions == 0 ? 0 : values.size() / dimensions; }
  std::span<const float> Row(size_t index) const {
    return std::span(values).subspan(index * dimensions, dimensions);
  }
};

/// Reads what `bouquet embed --output` writes: F.npy (float32, C order, two dimensions) or F.jsonl
/// ({"embedding": […]} a line). Error: kNotFound; kInvalidArgument saying what is wrong and where.
Result<ReferenceRows> ReadReference(const std::string& path);

/// 1 − cos(a, b), in double. Infinite when the lengths differ or a vector is zero or not finite:
/// such vectors agree with nothing.
double CosineDistance(std::span<const float> a, std::span<const float> b);

}  // namespace bouquet::bench
