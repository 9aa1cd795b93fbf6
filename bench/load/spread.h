#pragma once

#include <vector>

namespace bouquet::bench {

/// One figure over the rounds of a row.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// `values` has at least one. The median of an even number is the mean of the middle two.
Spread SpreadOf(std::vector<double> values);

}  // namespace bouquet::bench
