#include "rose/backend/factory.h"

#include <fmt/format.h>

#include "rose/backend/cpu/cpu_backend.h"
#include "rose/backend/cpu/cpu_count.h"

namespace bouquet::rose {
namespace {

constexpr int32_t kMaxThreads = 1024;

}  // namespace

Result<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options) {
  if (options.device != "cpu" && options.device != "auto") {
    return InvalidArgument(fmt::format("the device must be auto or cpu: {}", options.device),
                           "device");
  }
  if (options.compute_dtype != Dtype::kFloat32 && options.compute_dtype != Dtype::kBfloat16) {
    return InvalidArgument(fmt::format("the dtype on a CPU must be float32 or bfloat16: {}",
                                       DtypeName(options.compute_dtype)),
                           "dtype");
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument(fmt::format("threads must be 0..{}: {}", kMaxThreads, options.threads),
                           "threads");
  }
  ASSIGN_OR_RETURN(const cpu::Isa isa, cpu::ChooseIsa(options.isa));
  const int32_t threads = options.threads == 0 ? cpu::UsableCores() : options.threads;
  return Result<std::unique_ptr<Backend>>(
      std::make_unique<cpu::CpuBackend>(options.compute_dtype, threads, isa));
}

}  // namespace bouquet::rose
