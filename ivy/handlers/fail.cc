#include "ivy/handlers/fail.h"

#include "base/log.h"

namespace bouquet::ivy {

http::Response Fail(const api::Error& error, api::Dialect dialect, const http::Request& request) {
  if (error.kind == api::ErrorKind::kInternal || error.kind == api::ErrorKind::kFailedItems) {
    LogError("request {} failed: {}", request.request_id, error.message);
  } else {
    LogDebug("request {} refused: {}: {}", request.request_id, error.field, error.message);
  }
  return http::ErrorResponse(error, dialect, request.request_id);
}

}  // namespace bouquet::ivy
