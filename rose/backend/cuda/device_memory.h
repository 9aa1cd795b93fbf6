#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace bouquet::rose::cuda {

struct FreeDevice {
  void operator()(std::byte* data) const;
};
/// Memory of the device. Move-only; frees itself.
using DeviceMemory = std::unique_ptr<std::byte[], FreeDevice>;

/// Gives out device memory up to a bound. Everything is allocated while loading; steps allocate
/// nothing. Thread: one at a time.
class DeviceAllocator {
 public:
  /// `fraction` (0 < fraction ≤ 1) of the device's memory may be taken.
  explicit DeviceAllocator(double fraction) : fraction_(fraction) {}

  /// Zeroed memory for `what`. Error: kResourceExhausted that names bytes wanted, bytes free, the
  /// bound, and the flags that help.
  Result<DeviceMemory> Allocate(size_t bytes, std::string_view what);

  /// Bytes that may still be taken: within the bound and free now. 0 when the device does not say.
  int64_t Available() const;

 private:
  double fraction_;
  size_t allocated_bytes_ = 0;
};

}  // namespace bouquet::rose::cuda
