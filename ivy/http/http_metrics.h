#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "ivy/api/error.h"
#include "ivy/http/route_table.h"

namespace bouquet::ivy::http {

/// Where a request was when its client had gone.
enum class GoneStage : uint8_t { kReading, kHandling, kWriting };

/// The counters of the HTTP edge. All series exist from the start. One request is counted exactly
/// once, when its answer is known and before it is written. Thread: any.
class HttpMetrics {
 public:
  HttpMetrics(Metrics& metrics, const RouteTable& routes);

  /// `route` is nullptr for what matched no route.
  void CountRequest(const Route* route, int status, std::optional<api::ErrorKind> failure,
                    std::chrono::nanoseconds duration);
  void CountGone(GoneStage stage) { gone_[static_cast<size_t>(stage)]->Increment(); }
  void CountConnection() { connections_total_->Increment(); }
  void CountRefusedConnection() { refused_connections_->Increment(); }

  /// Gauges are set when they are read, not on the way.
  void SetGauges(int64_t connections, int64_t requests_in_progress, int64_t body_bytes);

 private:
  static constexpr size_t kNumStatusClasses = 4;  // 2xx, 4xx, 5xx, client_gone

  struct RouteSeries {
    std::array<Counter*, kNumStatusClasses> requests{};
    Histogram* seconds = nullptr;
  };
  std::vector<RouteSeries> routes_;  // the last is for what matched none
  std::array<Counter*, api::kNumErrorKinds> failures_{};
  std::array<Counter*, 3> gone_{};
  Counter* connections_total_;
  Counter* refused_connections_;
  Gauge* connections_;
  Gauge* requests_in_progress_;
  Gauge* body_bytes_;
};

}  // namespace bouquet::ivy::http
