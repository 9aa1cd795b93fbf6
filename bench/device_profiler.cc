#include "bench/device_profiler.h"

#include <dlfcn.h>

#include <utility>

namespace bouquet::bench {

Result<DeviceProfiler> DeviceProfiler::Start() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);  // the engine's own: it stays open
  if (driver == nullptr) {
    return Unimplemented("only steps on a CUDA device can be profiled");
  }
  auto* start = reinterpret_cast<Call*>(dlsym(driver, "cuProfilerStart"));
  auto* stop = reinterpret_cast<Call*>(dlsym(driver, "cuProfilerStop"));
  if (start == nullptr || stop == nullptr || start() != 0) {
    return Unimplemented("the CUDA driver refuses to be profiled");
  }
  return DeviceProfiler(stop);
}

DeviceProfiler::DeviceProfiler(DeviceProfiler&& other) noexcept
    : stop_(std::exchange(other.stop_, nullptr)) {}

DeviceProfiler::~DeviceProfiler() {
  if (stop_ != nullptr) {
    stop_();
  }
}

}  // namespace bouquet::bench
