#include "base/metrics.h"

#include <prometheus/text_serializer.h>

namespace bouquet {

Counter& Metrics::AddCounter(const std::string& name, const std::string& help,
                             const MetricLabels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(labels);
}

Gauge& Metrics::AddGauge(const std::string& name, const std::string& help,
                         const MetricLabels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels);
}

Histogram& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& buckets, const MetricLabels& labels) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels,
                                                                                    buckets);
}

std::string Metrics::Render() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

const std::vector<double>& Metrics::DurationBuckets() {
  static const std::vector<double> buckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                              0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                              1,      2.5,     5,      10,    30};
  return buckets;
}

}  // namespace bouquet
