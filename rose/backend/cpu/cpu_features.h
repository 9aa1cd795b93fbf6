#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace bouquet::rose::cpu {

/// The instruction sets that kernels are compiled for, each a superset of the one before. kPlain is
/// portable C++ and the path on machines that are not x86.
enum class Isa : uint8_t { kPlain, kAvx2, kAvx512, kAvx512Bf16 };

/// "plain", "avx2", "avx512", "avx512_bf16".
std::string_view IsaName(Isa isa);

/// The best set that this processor and its operating system support.
Isa DetectIsa();

/// The set called `name`, or the detected one when `name` is empty. Error: kInvalidArgument for an
/// unknown name, kUnimplemented for one that this processor lacks.
Result<Isa> ChooseIsa(std::string_view name);

}  // namespace bouquet::rose::cpu
