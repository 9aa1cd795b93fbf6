#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "base/status.h"
#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {

/// A mark in a stream. Move-only.
class Event {
 public:
  /// Without times, and waiting for it blocks instead of spinning.
  static Result<Event> Create() { return Make(cudaEventDisableTiming | cudaEventBlockingSync); }
  static Result<Event> CreateWithTime() { return Make(cudaEventDefault); }

  Event() = default;
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) {
      cudaEventDestroy(event_);
    }
  }
  cudaEvent_t get() const { return event_; }

  void Record(cudaStream_t stream) const { CUDA_CHECK(cudaEventRecord(event_, stream)); }
  bool IsReady() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) {
      return false;
    }
    CUDA_CHECK(state);
    return true;
  }
  void Wait() const { CUDA_CHECK(cudaEventSynchronize(event_)); }

 private:
  static Result<Event> Make(unsigned flags) {
    Event event;
    RETURN_IF_ERROR(
        CudaStatus(cudaEventCreateWithFlags(&event.event_, flags), "no event could be created"));
    return event;
  }
  cudaEvent_t event_ = nullptr;
};

}  // namespace bouquet::rose::cuda
