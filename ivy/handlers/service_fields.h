#pragma once

#include <chrono>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "ivy/api/error.h"
#include "ivy/encode/encode_request.h"
#include "ivy/http/message.h"
#include "model/traffic_class.h"

namespace bouquet::ivy {

/// What a request's headers say about how it is served; the same for all dialects.
struct ServiceFields {
  model::TrafficClass traffic_class = model::TrafficClass::kInteractive;  // x-bouquet-class
  std::chrono::milliseconds timeout{0};  // x-request-timeout-ms, bounded by the flag
  bool allow_partial = false;            // x-bouquet-partial: allow
  TraceContext trace;                    // traceparent, tracestate
};

/// A value that is none is an error that names the header; a trace that is none is no trace, as its
/// specification has it.
std::variant<ServiceFields, api::Error> ReadServiceFields(const http::Request& request,
                                                          std::chrono::milliseconds max_timeout);

}  // namespace bouquet::ivy
