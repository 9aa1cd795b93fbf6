#pragma once

#include <cmath>
#include <span>

#include "base/check.h"

namespace bouquet::testing {

/// 1 − cosine, in double.
inline double CosineDistance(std::span<const float> a, std::span<const float> b) {
  CHECK_EQ(a.size(), b.size());
  double dot = 0;
  double aa = 0;
  double bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return 1 - dot / std::sqrt(aa * bb);
}

}  // namespace bouquet::testing
