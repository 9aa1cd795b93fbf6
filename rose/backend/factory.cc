#include "rose/backend/factory.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rose/backend/cpu/cpu_backend.h"
#include "rose/backend/cpu/cpu_count.h"
#include "rose/backend/cpu/processors.h"
#ifdef BOUQUET_CUDA
#include "rose/backend/cuda/cuda_backend.h"
#endif

namespace bouquet::rose {
namespace {

constexpr int32_t kMaxThreads = 1024;

/// One for each of `threads`, at least.
Result<std::vector<int32_t>> ProcessorsFor(int32_t threads) {
  ASSIGN_OR_RETURN(std::vector<int32_t> processors, cpu::UsableProcessors());
  if (static_cast<size_t>(threads) > processors.size()) {
    return InvalidArgument(
        fmt::format("--pin-threads true needs a processor for each thread: {} threads, processors "
                    "that this process may use: {}",
                    threads, processors.size()),
        "threads");
  }
  return processors;
}

Result<std::unique_ptr<Backend>> CreateCpuBackend(const BackendOptions& options) {
  const Dtype dtype = options.compute_dtype.value_or(Dtype::kFloat32);
  if (dtype != Dtype::kFloat32 && dtype != Dtype::kBfloat16) {
    return InvalidArgument(
        fmt::format("the dtype on a CPU must be float32 or bfloat16: {}", DtypeName(dtype)),
        "dtype");
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument(fmt::format("threads must be 0..{}: {}", kMaxThreads, options.threads),
                           "threads");
  }
  ASSIGN_OR_RETURN(const cpu::Isa isa, cpu::ChooseIsa(options.isa));
  const int32_t threads = options.threads == 0 ? cpu::UsableCores() : options.threads;
  std::vector<int32_t> processors;
  if (options.pin_threads) {
    ASSIGN_OR_RETURN(processors, ProcessorsFor(threads));
  }
  auto backend = std::make_unique<cpu::CpuBackend>(dtype, threads, isa);
  if (options.pin_threads) {
    RETURN_IF_ERROR(backend->BindThreads(processors));
  }
  return Result<std::unique_ptr<Backend>>(std::move(backend));
}

Result<std::unique_ptr<Backend>> CreateCudaBackend(const BackendOptions& options) {
  if (options.pin_threads) {
    return InvalidArgument(
        fmt::format("threads are pinned where they compute, on a CPU: --pin-threads true with "
                    "--device {}",
                    options.device),
        "pin_threads");
  }
#ifdef BOUQUET_CUDA
  const Dtype dtype = options.compute_dtype.value_or(Dtype::kBfloat16);
  if (dtype != Dtype::kBfloat16) {
    return InvalidArgument(
        fmt::format("the dtype on a CUDA device must be bfloat16: {}", DtypeName(dtype)), "dtype");
  }
  if (!(options.memory_fraction > 0 && options.memory_fraction <= 1)) {
    return InvalidArgument(fmt::format("the memory fraction must be over 0 and at most 1: {}",
                                       options.memory_fraction),
                           "memory_fraction");
  }
  return cuda::CudaBackend::Make(options);
#else
  return Unimplemented(
      fmt::format("this binary was built without CUDA: {}. Use --device cpu, or build with "
                  "`./dev build cuda` where nvcc 13 is installed",
                  options.device),
      "device");
#endif
}

bool HasCudaDevice() {
#ifdef BOUQUET_CUDA
  return cuda::HasUsableDevice();
#else
  return false;
#endif
}

}  // namespace

Result<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options) {
  if (options.device == "auto") {
    BackendOptions chosen = options;
    chosen.device = HasCudaDevice() ? "cuda" : "cpu";
    return CreateBackend(chosen);
  }
  if (options.device == "cpu") {
    return CreateCpuBackend(options);
  }
  if (options.device == "cuda" || options.device.starts_with("cuda:")) {
    return CreateCudaBackend(options);
  }
  return InvalidArgument(
      fmt::format("the device must be auto, cpu, cuda or cuda:N: {}", options.device), "device");
}

}  // namespace bouquet::rose
