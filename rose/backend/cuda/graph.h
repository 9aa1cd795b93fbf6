#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <utility>

#include "base/status.h"

namespace bouquet::rose::cuda {

/// A captured and instantiated sequence of launches. Move-only.
class Graph {
 public:
  /// Runs `launches` while `stream` records instead of executing; only this thread's calls are
  /// watched, so that others may go on using the device. Error: kResourceExhausted when the device
  /// has no memory for it, kInternal when something in `launches` cannot be captured.
  static Result<Graph> Capture(cudaStream_t stream, const std::function<void()>& launches);

  Graph() = default;
  Graph(Graph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(exec_, other.exec_);
    return *this;
  }
  ~Graph();

  /// Must not be called while an earlier launch of it may still run on another stream.
  void Launch(cudaStream_t stream) const;

 private:
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace bouquet::rose::cuda
