#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet {
namespace {

using ::testing::HasSubstr;

TEST(MetricsTest, ShowsEverySeriesBeforeItsFirstEvent) {
  Metrics metrics;
  metrics.AddCounter("bouquet_requests_total", "Requests.", {{"route", "/embed"}});
  Counter& other = metrics.AddCounter("bouquet_requests_total", "Requests.", {{"route", "/info"}});
  Histogram& seconds = metrics.AddHistogram("bouquet_step_seconds", "Steps.", {0.5, 1});
  EXPECT_THAT(metrics.Render(), HasSubstr("bouquet_requests_total{route=\"/embed\"} 0"));
  other.Increment();
  seconds.Observe(0.75);
  EXPECT_THAT(metrics.Render(), HasSubstr("bouquet_requests_total{route=\"/info\"} 1"));
  EXPECT_THAT(metrics.Render(), HasSubstr("bouquet_step_seconds_bucket{le=\"0.5\"} 0"));
  EXPECT_THAT(metrics.Render(), HasSubstr("bouquet_step_seconds_bucket{le=\"1\"} 1"));
}

}  // namespace
}  // namespace bouquet
