#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace bouquet::rose::cuda {

/// Facts about one device. Fixed while the process lives.
struct DeviceFacts {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  int multiprocessors = 0;
  size_t memory_bytes = 0;
};

/// Makes "cuda" (the first device) or "cuda:N" the current device of this thread. Error:
/// kInvalidArgument for another name or an index that does not exist, kUnimplemented for a machine
/// without a device, a driver that is too old, or a device that is not sm_90; each says what would
/// work.
Result<DeviceFacts> OpenDevice(std::string_view name);

// What OpenDevice says, apart so that it can be read without such a machine.

/// Of a machine whose devices cannot be counted, or are none. `driver`, `runtime`: versions as CUDA
/// writes them, 13010; a driver of 0 is none.
Status NoDevice(cudaError_t error, int driver, int runtime);
/// Of a device whose context could not be made.
Status NotOpened(int index, cudaError_t error);
/// kOk for 9.0.
Status CheckCapability(int index, std::string_view name, int major, int minor);

/// True when OpenDevice("cuda") would succeed, for `--device auto`.
bool HasUsableDevice();

}  // namespace bouquet::rose::cuda
