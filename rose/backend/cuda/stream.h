#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "base/status.h"
#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {

/// A stream of the current device that does not wait for the default stream. Move-only.
class Stream {
 public:
  static Result<Stream> Create() {
    Stream stream;
    RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking),
                               "no stream could be created"));
    return stream;
  }
  Stream() = default;
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_ != nullptr) {
      cudaStreamDestroy(stream_);
    }
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace bouquet::rose::cuda
