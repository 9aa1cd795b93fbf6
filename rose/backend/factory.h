#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "rose/backend/backend.h"

namespace bouquet::rose {

struct BackendOptions {
  std::string device = "cpu";  // auto | cpu
  Dtype compute_dtype = Dtype::kFloat32;
  int32_t threads = 0;  // 0: as many as cores that this process may use
  /// For tests: plain | avx2 | avx512 | avx512_bf16; empty for the best that the processor has.
  std::string isa;
};

/// Error: kInvalidArgument for a device, dtype or thread count that does not exist,
/// kUnimplemented for an instruction set that this processor lacks.
Result<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options);

}  // namespace bouquet::rose
