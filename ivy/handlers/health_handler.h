#pragma once

#include <atomic>

#include "ivy/handlers/served_model.h"
#include "ivy/http/message.h"

namespace bouquet::ivy {

/// Liveness and readiness. A check looks at flags only: it never waits behind work and runs no
/// forward pass of its own. Thread: any.
class HealthHandler {
 public:
  explicit HealthHandler(const ModelTable& models) : models_(models) {}

  /// From now on the server is not ready.
  void BeginDrain() { draining_ = true; }

  /// Ready when every model is loaded and makes progress, and nothing is shutting down.
  Readiness Check() const;

  http::Response Live() const;                               // 200 while the process answers
  http::Response Ready(const http::Request& request) const;  // 200, or 503 with the reason

 private:
  const ModelTable& models_;
  std::atomic<bool> draining_ = false;
};

}  // namespace bouquet::ivy
