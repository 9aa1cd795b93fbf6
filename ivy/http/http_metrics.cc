#include "ivy/http/http_metrics.h"

#include <string_view>

namespace bouquet::ivy::http {
namespace {

constexpr std::array<std::string_view, 4> kStatusClasses = {"2xx", "4xx", "5xx", "client_gone"};
constexpr std::array<std::string_view, 3> kGoneStages = {"reading", "handling", "writing"};
constexpr std::string_view kUnmatched = "unmatched";

size_t StatusClass(int status) {
  if (status == 499) {
    return 3;
  }
  return status < 400 ? 0 : status < 500 ? 1 : 2;
}

}  // namespace

HttpMetrics::HttpMetrics(Metrics& metrics, const RouteTable& routes) {
  for (size_t i = 0; i <= routes.labels().size(); ++i) {
    const bool matched = i < routes.labels().size();
    const std::string route = matched ? routes.labels()[i] : std::string(kUnmatched);
    const std::optional<api::Dialect> dialect = matched ? routes.label_dialects()[i] : std::nullopt;
    const std::string dialect_name(dialect ? api::DialectName(*dialect) : "none");
    RouteSeries series;
    for (size_t k = 0; k < kNumStatusClasses; ++k) {
      series.requests[k] =
          &metrics.AddCounter("bouquet_http_requests_total", "HTTP requests, each counted once",
                              {{"route", route},
                               {"dialect", dialect_name},
                               {"status", std::string(kStatusClasses[k])}});
    }
    series.seconds = &metrics.AddHistogram("bouquet_http_request_seconds",
                                           "From a request's first byte to its answer being known",
                                           Metrics::DurationBuckets(), {{"route", route}});
    routes_.push_back(series);
  }
  for (size_t i = 0; i < api::kNumErrorKinds; ++i) {
    const auto kind = static_cast<api::ErrorKind>(i);
    failures_[i] =
        &metrics.AddCounter("bouquet_http_failures_total", "Requests without a result, by reason",
                            {{"reason", std::string(api::ErrorKindName(kind))}});
  }
  for (size_t i = 0; i < kGoneStages.size(); ++i) {
    gone_[i] = &metrics.AddCounter("bouquet_http_cancelled_total",
                                   "Requests whose client hung up, by what was being done",
                                   {{"stage", std::string(kGoneStages[i])}});
  }
  connections_total_ =
      &metrics.AddCounter("bouquet_http_connections_total", "Connections accepted");
  refused_connections_ = &metrics.AddCounter("bouquet_http_refused_connections_total",
                                             "Connections over --max-connections");
  connections_ = &metrics.AddGauge("bouquet_http_connections", "Connections open");
  requests_in_progress_ =
      &metrics.AddGauge("bouquet_http_requests_in_progress", "Requests read or answered now");
  body_bytes_ = &metrics.AddGauge("bouquet_http_body_bytes", "Bytes of large bodies held now");
}

void HttpMetrics::CountRequest(const Route* route, int status,
                               std::optional<api::ErrorKind> failure,
                               std::chrono::nanoseconds duration) {
  const RouteSeries& series = route == nullptr ? routes_.back() : routes_[route->metric_index];
  series.requests[StatusClass(status)]->Increment();
  series.seconds->Observe(std::chrono::duration<double>(duration).count());
  if (failure) {
    failures_[static_cast<size_t>(*failure)]->Increment();
  }
}

void HttpMetrics::SetGauges(int64_t connections, int64_t requests_in_progress, int64_t body_bytes) {
  connections_->Set(static_cast<double>(connections));
  requests_in_progress_->Set(static_cast<double>(requests_in_progress));
  body_bytes_->Set(static_cast<double>(body_bytes));
}

}  // namespace bouquet::ivy::http
