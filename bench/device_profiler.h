#pragma once

#include "base/status.h"

namespace bouquet::bench {

/// Tells a profiler that watches this process (ncu --profile-from-start off) which part of it to
/// look at: what is launched while an object of this class lives. Asks the CUDA driver, which is
/// found at run time.
class DeviceProfiler {
 public:
  /// Error: kUnimplemented where there is no driver.
  static Result<DeviceProfiler> Start();

  DeviceProfiler(const DeviceProfiler&) = delete;
  DeviceProfiler& operator=(const DeviceProfiler&) = delete;
  DeviceProfiler(DeviceProfiler&& other) noexcept;
  DeviceProfiler& operator=(DeviceProfiler&&) = delete;
  ~DeviceProfiler();

 private:
  using Call = int();
  explicit DeviceProfiler(Call* stop) : stop_(stop) {}

  Call* stop_;
};

}  // namespace bouquet::bench
