#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ivy/api/dialect.h"

namespace bouquet::ivy::api {

/// Why a request gets no result. Finer than StatusCode where the answer's status or shape differs;
/// a closed set: it is the `reason` label of the failure counter.
enum class ErrorKind : uint8_t {
  kMalformedBody,  // not JSON, not UTF-8, a lone surrogate
  kInvalidValue,
  kEmptyInput,
  kTooLarge,  // over a limit that an operator can raise
  kUnknownModel,
  kUnknownRoute,
  kMethodNotAllowed,
  kMalformedRequest,  // not HTTP
  kReadTimeout,
  kUnsupportedMediaType,
  kHeaderTooLarge,
  kExpectationFailed,
  kUnauthorized,
  kOverCapacity,
  kDeadlineExceeded,
  kUnavailable,
  kUnimplemented,
  kClientGone,   // nobody reads this answer: for logs and metrics
  kFailedItems,  // some inputs failed alone (a row that is not finite); the message names them
  kInternal,
};
inline constexpr size_t kNumErrorKinds = static_cast<size_t>(ErrorKind::kInternal) + 1;

/// `field` is the path of the offending value where there is one. `message` says the fixed text
/// first, the values last.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string field;
  int32_t retry_after_seconds = 1;  // for the kinds that say when to try again
};

ErrorKind KindOf(StatusCode code);
Error ErrorFrom(const Status& status);

/// "invalid_value" and so on.
std::string_view ErrorKindName(ErrorKind kind);
/// The one table from a failure to its HTTP status.
int HttpStatus(ErrorKind kind, Dialect dialect);
/// True for the kinds whose answer says when to try again (429, 503).
bool HasRetryAfter(ErrorKind kind);

/// The error body in the dialect's own shape. Internal errors show the request id only: no
/// addresses, paths or device text.
std::string RenderError(const Error& error, Dialect dialect, std::string_view request_id);
/// The `error` object of the OpenAI shape, alone: also used for an item that failed by itself.
void AppendOpenAiError(const Error& error, std::string_view request_id, std::string& out);

}  // namespace bouquet::ivy::api
