#include "rose/backend/cuda/device.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <charconv>

#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {
namespace {

constexpr int kMajor = 9;  // Hopper: the kernels are built for sm_90a only
constexpr int kMinor = 0;

std::string Version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

Result<int> IndexOf(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda";
  const Status bad = InvalidArgument(
      fmt::format("a CUDA device must be cuda or cuda:N with N from 0: {}", name), "device");
  if (!name.starts_with(kPrefix)) {
    return bad;
  }
  name.remove_prefix(kPrefix.size());
  if (name.empty()) {
    return 0;
  }
  name.remove_prefix(1);
  int index = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index < 0) {
    return bad;
  }
  return index;
}

Result<int> CountDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    return count;
  }
  cudaGetLastError();
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return NoDevice(error, driver, runtime);
}

/// The first call that needs a context: a device whose memory others hold, or that one process
/// holds alone, fails here.
Status MakeContext(int index) {
  cudaError_t error = cudaSetDevice(index);
  if (error == cudaSuccess) {
    error = cudaFree(nullptr);
  }
  cudaGetLastError();
  return error == cudaSuccess ? Status() : NotOpened(index, error);
}

}  // namespace

Status NoDevice(cudaError_t error, int driver, int runtime) {
  if (error == cudaErrorInsufficientDriver && driver != 0) {
    return Unimplemented(
        fmt::format("the NVIDIA driver is too old for this binary: it serves CUDA {}, and {} is "
                    "needed. Update the driver, or use --device cpu",
                    Version(driver), Version(runtime)),
        "device");
  }
  const std::string reason = driver == 0            ? "no NVIDIA driver was found"
                             : error != cudaSuccess ? cudaGetErrorString(error)
                                                    : "the driver shows no device";
  return Unimplemented(
      fmt::format("no CUDA device can be used on this machine: {}. Use --device cpu, or check with "
                  "nvidia-smi that the driver runs and that this process may see the device",
                  reason),
      "device");
}

Status NotOpened(int index, cudaError_t error) {
  if (error != cudaErrorMemoryAllocation && error != cudaErrorDevicesUnavailable) {
    return CudaStatus(error, fmt::format("cuda:{} cannot be opened", index));
  }
  return ResourceExhausted(fmt::format(
      "cuda:{} {}: nvidia-smi lists its processes. End them, or use another device or "
      "--device cpu",
      index,
      error == cudaErrorMemoryAllocation ? "has no memory left for this process, others hold it"
                                         : "is held by another process alone"));
}

Status CheckCapability(int index, std::string_view name, int major, int minor) {
  if (major == kMajor && minor == kMinor) {
    return {};
  }
  return Unimplemented(
      fmt::format("the CUDA backend needs compute capability 9.0 (NVIDIA H100, H200, GH200); "
                  "cuda:{} is {} with {}.{}. Use --device cpu",
                  index, name, major, minor),
      "device");
}

Result<DeviceFacts> OpenDevice(std::string_view name) {
  ASSIGN_OR_RETURN(const int index, IndexOf(name));
  ASSIGN_OR_RETURN(const int count, CountDevices());
  if (index >= count) {
    return InvalidArgument(fmt::format("this CUDA device does not exist: {}; there {} {}, from "
                                       "cuda:0",
                                       name, count == 1 ? "is" : "are", count),
                           "device");
  }
  cudaDeviceProp properties{};
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, index),
                             fmt::format("{} cannot be queried", name)));
  RETURN_IF_ERROR(CheckCapability(index, properties.name, properties.major, properties.minor));
  RETURN_IF_ERROR(MakeContext(index));
  DeviceFacts facts;
  facts.index = index;
  facts.name = properties.name;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.memory_bytes = properties.totalGlobalMem;
  return facts;
}

bool HasUsableDevice() {
  const Result<int> count = CountDevices();
  if (!count.ok()) {
    return false;
  }
  int major = 0;
  int minor = 0;
  const bool is_known =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess;
  return is_known && major == kMajor && minor == kMinor;
}

}  // namespace bouquet::rose::cuda
