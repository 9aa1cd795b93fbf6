#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "ivy/api/endpoint.h"
#include "ivy/api/error.h"

namespace bouquet::ivy::http {

struct Header {
  std::string_view name;
  std::string_view value;
};

/// A request as handlers see it, complete. Lives in its connection until the answer is written.
struct Request {
  api::Method method = api::Method::kGet;
  std::string_view rest;  // what "/*" of the route stood for, percent-decoding done
  std::span<const Header> headers;
  std::string body;
  std::string request_id;  // the client's own, or a fresh one
  TimePoint received;      // when its last byte was there
  /// Stopped when the client hangs up.
  std::stop_source cancelled{std::nostopstate};

  /// The value of the first header of this name (any case), or empty.
  std::string_view Find(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string fields;  // further header lines, each "name: value\r\n"
  std::string body;
  std::optional<api::ErrorKind> failure;  // counted by reason
};

/// An error in the dialect's shape.
Response ErrorResponse(const api::Error& error, api::Dialect dialect, std::string_view request_id);

bool EqualsIgnoringCase(std::string_view a, std::string_view b);

}  // namespace bouquet::ivy::http
