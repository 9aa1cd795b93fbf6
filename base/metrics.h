#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/counter.h>  // the one place that names the metrics library
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace bouquet {

using Counter = prometheus::Counter;      // Increment(double = 1)
using Gauge = prometheus::Gauge;          // Set, Increment, Decrement
using Histogram = prometheus::Histogram;  // Observe(double)
using MetricLabels = std::map<std::string, std::string>;

/// Prometheus series by name. Everything is registered at start with all its label values, so that
/// an idle server shows zeros and the number of series is fixed; look-ups on the hot path are
/// references kept since then. Names carry their unit and start with "bouquet_". Thread: any. The
/// registry must outlive what it hands out.
class Metrics {
 public:
  Counter& AddCounter(const std::string& name, const std::string& help,
                      const MetricLabels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help,
                  const MetricLabels& labels = {});
  /// `buckets` are upper bounds, rising; the infinite one is added.
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& buckets, const MetricLabels& labels = {});

  /// The text exposition format, version 0.0.4.
  std::string Render() const;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  /// Seconds from 100 µs to 30 s: for every duration of a request, so that stages can be compared.
  static const std::vector<double>& DurationBuckets();

 private:
  prometheus::Registry registry_;
};

}  // namespace bouquet
