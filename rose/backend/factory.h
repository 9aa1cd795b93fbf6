#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "rose/backend/backend.h"

namespace bouquet::rose {

enum class GraphMode : uint8_t {
  kLazy,     // a padded size is captured when it is met for the second time
  kStartup,  // when it is met for the first time, and the engine meets a whole grid while loading
  kOff,      // launches one by one
};

struct BackendOptions {
  std::string device = "cpu";  // auto | cpu | cuda | cuda:N
  /// Absent: float32 on a CPU, bfloat16 on a CUDA device.
  std::optional<Dtype> compute_dtype;

  // --- CPU ---
  int32_t threads = 0;  // 0: as many as cores that this process may use
  /// Binds each thread to a processor of its own, in the order of cpu/processors.h.
  bool pin_threads = false;
  /// For tests: plain | avx2 | avx512 | avx512_bf16; empty for the best that the processor has.
  std::string isa;

  // --- CUDA ---
  GraphMode graphs = GraphMode::kLazy;
  std::string attention = "auto";  // or the name of one kernel for everything
  double memory_fraction = 0.9;    // of the device's memory, at most
  /// For tests of single ops: steps run with exactly the sizes they are given.
  bool pad_steps = true;
};

/// `auto` is the first CUDA device that can be used, where this binary was built with CUDA, else
/// the CPU. Error: kInvalidArgument for a device, dtype or option that does not exist,
/// kUnimplemented for what this binary, processor or machine lacks, each with what would work.
Result<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options);

}  // namespace bouquet::rose
