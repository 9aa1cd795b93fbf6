#include "bench/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace bouquet::bench {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

constexpr double kRelativeError = 0.001;

/// The definition, by sorting: the k-th smallest value with k = ceil(percent × n / 100).
int64_t SortedPercentile(std::vector<int64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const auto rank = static_cast<int64_t>(std::ceil(percent * n / 100));
  return values[static_cast<size_t>(std::clamp<int64_t>(rank, 1, static_cast<int64_t>(n)) - 1)];
}

/// Log-uniform over 1 µs .. 1 h.
std::vector<int64_t> RandomNanoseconds(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(std::log(1e3), std::log(3.6e12));
  std::vector<int64_t> values(count);
  for (int64_t& value : values) {
    value = static_cast<int64_t>(std::exp(exponent(random)));
  }
  return values;
}

TEST(HistogramTest, AgreesWithSortingToATenthOfAPercentFromAMicrosecondToAnHour) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<int64_t> values = RandomNanoseconds(seed * 137, seed);
    Histogram histogram;
    for (const int64_t value : values) {
      histogram.Record(nanoseconds(value));
    }
    for (const double percent : {0.1, 1.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99}) {
      const auto expected = static_cast<double>(SortedPercentile(values, percent));
      EXPECT_NEAR(static_cast<double>(histogram.Percentile(percent).count()), expected,
                  expected * kRelativeError)
          << percent;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_EQ(histogram.min().count(), *least);
    EXPECT_EQ(histogram.max().count(), *most);
    EXPECT_EQ(histogram.Percentile(0).count(), *least);
    EXPECT_EQ(histogram.Percentile(100).count(), *most);
    EXPECT_EQ(histogram.count(), static_cast<int64_t>(values.size()));
  }
}

TEST(HistogramTest, EveryValueIsReadBackWithinATenthOfAPercent) {
  for (int64_t value = 1; value < 3'600'000'000'000; value += value / 97 + 1) {
    Histogram histogram;
    histogram.Record(nanoseconds(value));
    ASSERT_EQ(histogram.Buckets().size(), 1U);
    EXPECT_NEAR(static_cast<double>(histogram.Buckets()[0].first), static_cast<double>(value),
                static_cast<double>(value) * kRelativeError);
  }
}

TEST(HistogramTest, TakesTheNearestRankOfFewValues) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) {
    histogram.Record(nanoseconds(i));
  }
  EXPECT_EQ(histogram.Percentile(50).count(), 50);
  EXPECT_EQ(histogram.Percentile(99).count(), 99);
  EXPECT_EQ(histogram.Percentile(99.1).count(), 100);
  EXPECT_EQ(histogram.mean().count(), 50);
}

TEST(HistogramTest, MergedPartsEqualTheWhole) {
  const std::vector<int64_t> values = RandomNanoseconds(3000, 7);
  Histogram whole;
  std::vector<Histogram> parts(3);
  for (size_t i = 0; i < values.size(); ++i) {
    whole.Record(nanoseconds(values[i]));
    parts[i * i % 3].Record(nanoseconds(values[i]));
  }
  Histogram merged;
  for (const Histogram& part : parts) {
    merged.Merge(part);
  }
  EXPECT_EQ(merged.Buckets(), whole.Buckets());
  EXPECT_EQ(merged.min(), whole.min());
  EXPECT_EQ(merged.max(), whole.max());
  EXPECT_EQ(merged.sum(), whole.sum());
  EXPECT_EQ(merged.count(), whole.count());
}

TEST(HistogramTest, ComesBackFromItsBuckets) {
  Histogram histogram;
  for (const int64_t value : RandomNanoseconds(500, 3)) {
    histogram.Record(nanoseconds(value));
  }
  const Result<Histogram> back = Histogram::FromBuckets(histogram.Buckets(), histogram.min(),
                                                        histogram.max(), histogram.sum());
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->Buckets(), histogram.Buckets());
  EXPECT_EQ(back->min(), histogram.min());
  EXPECT_EQ(back->max(), histogram.max());
  EXPECT_EQ(back->Percentile(99.9), histogram.Percentile(99.9));
}

TEST(HistogramTest, RefusesBucketsThatContradictTheExtremes) {
  EXPECT_FALSE(Histogram::FromBuckets({{1000, 2}}, nanoseconds(1), nanoseconds(1000), {}).ok());
  EXPECT_FALSE(Histogram::FromBuckets({{-1, 2}}, nanoseconds(0), nanoseconds(0), {}).ok());
  EXPECT_FALSE(Histogram::FromBuckets({{5, 0}}, nanoseconds(5), nanoseconds(5), {}).ok());
  EXPECT_TRUE(Histogram::FromBuckets({}, nanoseconds(0), nanoseconds(0), {}).ok());
}

TEST(HistogramTest, HoldsValuesOutsideItsRangeAtTheEnds) {
  Histogram histogram;
  histogram.Record(nanoseconds(-5));
  histogram.Record(hours(3));
  EXPECT_EQ(histogram.min().count(), 0);
  EXPECT_EQ(histogram.max(), hours(1));
}

TEST(HistogramTest, IsZeroWhenEmpty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Percentile(50).count(), 0);
  EXPECT_EQ(histogram.mean().count(), 0);
  EXPECT_TRUE(histogram.Buckets().empty());
}

}  // namespace
}  // namespace bouquet::bench
