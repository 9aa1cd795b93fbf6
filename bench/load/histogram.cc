#include "bench/load/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace bouquet::bench {

Histogram::Histogram(int precision_bits) : precision_bits_(precision_bits) {
  CHECK_LT(1, precision_bits);
  CHECK_LT(precision_bits, 16);
}

/// Values below 2^precision_bits have a bucket each; each power of two above has half as many.
size_t Histogram::IndexOf(int64_t ns) const {
  const auto value = static_cast<uint64_t>(ns);
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - precision_bits_);
  const size_t half = size_t{1} << (precision_bits_ - 1);
  return static_cast<size_t>(shift) * half + static_cast<size_t>(value >> shift);
}

int64_t Histogram::MiddleOf(size_t index) const {
  const size_t half = size_t{1} << (precision_bits_ - 1);
  if (index < 2 * half) {
    return static_cast<int64_t>(index);
  }
  const size_t shift = index / half - 1;
  const auto low = static_cast<int64_t>((index - shift * half) << shift);
  return low + (int64_t{1} << shift) / 2;
}

void Histogram::Record(Nanoseconds value, int64_t count) {
  if (count <= 0) {
    return;
  }
  const int64_t ns = std::clamp<int64_t>(value.count(), 0, Nanoseconds(kMaximum).count());
  const size_t index = IndexOf(ns);
  if (index >= counts_.size()) {
    counts_.resize(index + 1, 0);
  }
  counts_[index] += count;
  min_ns_ = empty() ? ns : std::min(min_ns_, ns);
  max_ns_ = std::max(max_ns_, ns);
  sum_ns_ += ns * count;
  count_ += count;
}

void Histogram::Merge(const Histogram& other) {
  CHECK_EQ(precision_bits_, other.precision_bits_);
  if (other.empty()) {
    return;
  }
  counts_.resize(std::max(counts_.size(), other.counts_.size()), 0);
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    counts_[i] += other.counts_[i];
  }
  min_ns_ = empty() ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
  count_ += other.count_;
}

Histogram::Nanoseconds Histogram::mean() const {
  return Nanoseconds(empty() ? 0 : sum_ns_ / count_);
}

Histogram::Nanoseconds Histogram::Percentile(double percent) const {
  CHECK(percent >= 0 && percent <= 100);
  if (empty() || percent <= 0) {
    return min();
  }
  // Nearest rank: the k-th smallest value with k = ceil(percent × count / 100). The division comes
  // last, so that 99 % of 100 is 99 and not the next integer above a rounded product.
  const auto rank = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(percent * static_cast<double>(count_) / 100.0)), 1, count_);
  if (rank == count_) {
    return max();
  }
  int64_t passed = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    passed += counts_[i];
    if (passed >= rank) {
      return Nanoseconds(std::clamp(MiddleOf(i), min_ns_, max_ns_));
    }
  }
  return max();
}

std::vector<std::pair<int64_t, int64_t>> Histogram::Buckets() const {
  std::vector<std::pair<int64_t, int64_t>> buckets;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] > 0) {
      buckets.emplace_back(MiddleOf(i), counts_[i]);
    }
  }
  return buckets;
}

Result<Histogram> Histogram::FromBuckets(const std::vector<std::pair<int64_t, int64_t>>& buckets,
                                         Nanoseconds min, Nanoseconds max, Nanoseconds sum,
                                         int precision_bits) {
  Histogram histogram(precision_bits);
  for (const auto& [ns, count] : buckets) {
    if (ns < 0 || ns > 2 * Nanoseconds(kMaximum).count() || count <= 0 ||
        count > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument(
          fmt::format("a histogram's bucket is out of bounds: {} ns, {} times", ns, count));
    }
    histogram.Record(Nanoseconds(ns), count);
  }
  if (histogram.empty()) {
    return histogram;
  }
  if (min > max || min.count() < 0 || max > kMaximum || sum.count() < 0 ||
      histogram.IndexOf(min.count()) != histogram.IndexOf(histogram.min_ns_) ||
      histogram.IndexOf(max.count()) != histogram.IndexOf(histogram.max_ns_)) {
    return InvalidArgument(fmt::format("a histogram's extremes contradict its buckets: {}..{} ns",
                                       min.count(), max.count()));
  }
  histogram.min_ns_ = min.count();
  histogram.max_ns_ = max.count();
  histogram.sum_ns_ = sum.count();
  return histogram;
}

}  // namespace bouquet::bench
