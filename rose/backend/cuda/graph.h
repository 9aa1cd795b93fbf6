#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/status.h"

namespace bouquet::rose::cuda {

/// Device memory of which each part is cleared for one launch alone.
struct ClearedMemory {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

/// A captured and instantiated sequence of launches. Move-only.
class Graph {
 public:
  /// Runs `launches` while `stream` records instead of executing; only this thread's calls are
  /// watched, so that others may go on using the device. Error: kResourceExhausted when the device
  /// has no memory for it, kInternal when something in `launches` cannot be captured.
  ///
  /// What `launches` clears within `cleared` is cleared at once before all else: a node that clears
  /// a few bytes costs the device and the host more than one that launches a kernel.
  static Result<Graph> Capture(cudaStream_t stream, const std::function<void()>& launches,
                               ClearedMemory cleared = {});

  Graph() = default;
  Graph(Graph&& other) noexcept
      : exec_(std::exchange(other.exec_, nullptr)), num_nodes_(other.num_nodes_) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(exec_, other.exec_);
    std::swap(num_nodes_, other.num_nodes_);
    return *this;
  }
  ~Graph();

  size_t num_nodes() const { return num_nodes_; }
  /// Device memory that it takes, at most: the driver does not say.
  int64_t bytes() const { return static_cast<int64_t>(num_nodes_) * kBytesPerNode; }

  /// Must not be called while an earlier launch of it may still run on another stream.
  void Launch(cudaStream_t stream) const;

 private:
  // Measured on an H200; graph_test checks it.
  static constexpr int64_t kBytesPerNode = 4096;

  cudaGraphExec_t exec_ = nullptr;
  size_t num_nodes_ = 0;
};

}  // namespace bouquet::rose::cuda
