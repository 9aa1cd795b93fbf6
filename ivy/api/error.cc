#include "ivy/api/error.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace bouquet::ivy::api {
namespace {

struct ErrorRow {
  ErrorKind kind;
  std::string_view name;
  int openai_status;
  int tei_status;
  std::string_view openai_type;
  std::string_view openai_code;  // empty: null
  std::string_view tei_type;
};

constexpr std::string_view kInvalid = "invalid_request_error";

// One row per kind, in the enum's order.
constexpr std::array<ErrorRow, kNumErrorKinds> kErrors = {{
    {ErrorKind::kMalformedBody, "malformed_body", 400, 400, kInvalid, "", "Validation"},
    {ErrorKind::kInvalidValue, "invalid_value", 400, 422, kInvalid, "", "Validation"},
    {ErrorKind::kEmptyInput, "empty_input", 400, 400, kInvalid, "", "Empty"},
    {ErrorKind::kTooLarge, "too_large", 413, 413, kInvalid, "", "Validation"},
    {ErrorKind::kUnknownModel, "unknown_model", 404, 404, "not_found_error", "model_not_found",
     "NotFound"},
    {ErrorKind::kUnknownRoute, "unknown_route", 404, 404, "not_found_error", "", "NotFound"},
    {ErrorKind::kMethodNotAllowed, "method_not_allowed", 405, 405, kInvalid, "", "Validation"},
    {ErrorKind::kMalformedRequest, "malformed_request", 400, 400, kInvalid, "", "Validation"},
    {ErrorKind::kReadTimeout, "read_timeout", 408, 408, "timeout_error", "", "Timeout"},
    {ErrorKind::kUnsupportedMediaType, "unsupported_media_type", 415, 415, kInvalid, "",
     "Validation"},
    {ErrorKind::kHeaderTooLarge, "header_too_large", 431, 431, kInvalid, "", "Validation"},
    {ErrorKind::kExpectationFailed, "expectation_failed", 417, 417, kInvalid, "", "Validation"},
    {ErrorKind::kUnauthorized, "unauthorized", 401, 401, "authentication_error", "invalid_api_key",
     "Unauthorized"},
    {ErrorKind::kOverCapacity, "over_capacity", 429, 429, "rate_limit_error", "rate_limit_exceeded",
     "Overloaded"},
    {ErrorKind::kDeadlineExceeded, "deadline_exceeded", 504, 504, "timeout_error", "", "Timeout"},
    {ErrorKind::kUnavailable, "unavailable", 503, 503, "unavailable_error", "", "Unhealthy"},
    {ErrorKind::kUnimplemented, "unimplemented", 501, 501, "server_error", "", "Backend"},
    {ErrorKind::kClientGone, "client_gone", 499, 499, "timeout_error", "", "Timeout"},
    {ErrorKind::kFailedItems, "failed_items", 500, 500, "server_error", "", "Backend"},
    {ErrorKind::kInternal, "internal", 500, 500, "server_error", "", "Backend"},
}};

constexpr bool RowsFollowTheEnum() {
  for (size_t i = 0; i < kErrors.size(); ++i) {
    if (static_cast<size_t>(kErrors[i].kind) != i) {
      return false;
    }
  }
  return true;
}
static_assert(RowsFollowTheEnum());

const ErrorRow& RowOf(ErrorKind kind) { return kErrors[static_cast<size_t>(kind)]; }

/// Messages may quote what a client sent: paths and headers are bytes, and JSON is UTF-8.
std::string AsUtf8(std::string text) {
  if (!simdjson::validate_utf8(text)) {
    for (char& c : text) {
      c = static_cast<uint8_t>(c) < 0x80 ? c : '?';
    }
  }
  return text;
}

std::string ShownMessage(const Error& error, std::string_view request_id) {
  if (error.kind == ErrorKind::kInternal) {
    return fmt::format("internal error; the server's log has more under request id {}", request_id);
  }
  return AsUtf8(error.field.empty() ? error.message
                                    : fmt::format("{}: {}", error.field, error.message));
}

}  // namespace

ErrorKind KindOf(StatusCode code) {
  switch (code) {
    case StatusCode::kCancelled: return ErrorKind::kClientGone;
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition: return ErrorKind::kInvalidValue;
    case StatusCode::kDeadlineExceeded: return ErrorKind::kDeadlineExceeded;
    case StatusCode::kNotFound: return ErrorKind::kUnknownModel;
    case StatusCode::kResourceExhausted: return ErrorKind::kOverCapacity;
    case StatusCode::kOutOfRange: return ErrorKind::kTooLarge;
    case StatusCode::kUnimplemented: return ErrorKind::kUnimplemented;
    case StatusCode::kUnavailable: return ErrorKind::kUnavailable;
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated: return ErrorKind::kUnauthorized;
    case StatusCode::kOk:
    case StatusCode::kUnknown:
    case StatusCode::kAlreadyExists:
    case StatusCode::kAborted:
    case StatusCode::kInternal:
    case StatusCode::kDataLoss: return ErrorKind::kInternal;
  }
  return ErrorKind::kInternal;
}

Error ErrorFrom(const Status& status) {
  return {KindOf(status.code()), status.message(), status.field(),
          std::max(status.retry_after_seconds(), 1)};
}

std::string_view ErrorKindName(ErrorKind kind) { return RowOf(kind).name; }

int HttpStatus(ErrorKind kind, Dialect dialect) {
  const ErrorRow& row = RowOf(kind);
  switch (dialect) {
    case Dialect::kOpenAi: return row.openai_status;
    case Dialect::kTei: return row.tei_status;
  }
  return row.openai_status;
}

bool HasRetryAfter(ErrorKind kind) {
  return kind == ErrorKind::kOverCapacity || kind == ErrorKind::kUnavailable;
}

void AppendOpenAiError(const Error& error, std::string_view request_id, std::string& out) {
  const ErrorRow& row = RowOf(error.kind);
  out += R"({"message":)";
  AppendJsonString(ShownMessage(error, request_id), out);
  out += R"(,"type":)";
  AppendJsonString(row.openai_type, out);
  out += R"(,"param":)";
  if (error.field.empty()) {
    out += "null";
  } else {
    AppendJsonString(AsUtf8(error.field), out);
  }
  out += R"(,"code":)";
  if (row.openai_code.empty()) {
    out += "null";
  } else {
    AppendJsonString(row.openai_code, out);
  }
  out += '}';
}

std::string RenderError(const Error& error, Dialect dialect, std::string_view request_id) {
  std::string body;
  switch (dialect) {
    case Dialect::kOpenAi:
      body += R"({"error":)";
      AppendOpenAiError(error, request_id, body);
      body += '}';
      break;
    case Dialect::kTei:
      body += R"({"error":)";
      AppendJsonString(ShownMessage(error, request_id), body);
      body += R"(,"error_type":)";
      AppendJsonString(RowOf(error.kind).tei_type, body);
      body += '}';
      break;
  }
  return body;
}

}  // namespace bouquet::ivy::api
