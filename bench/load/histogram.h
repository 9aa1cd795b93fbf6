#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"

namespace bouquet::bench {

/// Durations in bounded memory, in the manner of HDR histograms (hdrhistogram.org): each power of
/// two is cut into `2^(precision_bits - 1)` equal buckets, so a value read back is off by no more
/// than `2^-precision_bits` of itself: 0.05 % with the default, over 1 µs .. 1 h, in at most 270
/// KB. Minimum, maximum and sum are exact. Durations over an hour count as an hour, negative ones
/// as 0.
///
/// Thread: one at a time.
class Histogram {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  static constexpr int kDefaultPrecisionBits = 11;
  static constexpr Nanoseconds kMaximum = std::chrono::hours(1);

  explicit Histogram(int precision_bits = kDefaultPrecisionBits);

  void Record(Nanoseconds value, int64_t count = 1);
  /// Adds all of `other`, whose precision is the same (CHECK).
  void Merge(const Histogram& other);

  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  Nanoseconds min() const { return Nanoseconds(empty() ? 0 : min_ns_); }
  Nanoseconds max() const { return Nanoseconds(max_ns_); }
  Nanoseconds mean() const;
  /// The smallest recorded value that at least `percent` % of the values do not exceed, to within
  /// the precision; 0 when empty. `percent` is in 0..100; 0 and 100 are exact.
  Nanoseconds Percentile(double percent) const;

  /// (middle of a bucket in ns, count), rising, without the empty ones.
  std::vector<std::pair<int64_t, int64_t>> Buckets() const;
  /// The reverse: a bucket's middle falls into the bucket again. Exact extremes and sum are given
  /// beside them. Error: kInvalidArgument when they contradict each other.
  static Result<Histogram> FromBuckets(const std::vector<std::pair<int64_t, int64_t>>& buckets,
                                       Nanoseconds min, Nanoseconds max, Nanoseconds sum,
                                       int precision_bits = kDefaultPrecisionBits);
  Nanoseconds sum() const { return Nanoseconds(sum_ns_); }

 private:
  size_t IndexOf(int64_t ns) const;
  int64_t MiddleOf(size_t index) const;

  int precision_bits_;
  std::vector<int64_t> counts_;  // grows up to the largest value seen
  int64_t count_ = 0;
  int64_t sum_ns_ = 0;
  int64_t min_ns_ = 0;
  int64_t max_ns_ = 0;
};

}  // namespace bouquet::bench
