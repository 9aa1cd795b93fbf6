#include "rose/backend/cpu/cpu_features.h"

#include <array>

#include <fmt/format.h>

namespace bouquet::rose::cpu {
namespace {

constexpr std::array kAllIsas = {Isa::kPlain, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPlain: return "plain";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Bf16: return "avx512_bf16";
  }
  return "unknown";
}

Isa DetectIsa() {
#if defined(__x86_64__)
  // The compiler's run-time check covers the operating system's part (saved registers) too.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2")) {
    return Isa::kPlain;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return Isa::kAvx2;
  }
  return __builtin_cpu_supports("avx512bf16") ? Isa::kAvx512Bf16 : Isa::kAvx512;
#else
  return Isa::kPlain;
#endif
}

Result<Isa> ChooseIsa(std::string_view name) {
  const Isa detected = DetectIsa();
  if (name.empty()) {
    return detected;
  }
  for (const Isa isa : kAllIsas) {
    if (IsaName(isa) != name) {
      continue;
    }
    if (isa > detected) {
      return Unimplemented(fmt::format("this processor lacks the instruction set: {}, it has {}",
                                       name, IsaName(detected)),
                           "isa");
    }
    return isa;
  }
  return InvalidArgument(
      fmt::format("the instruction set must be plain, avx2, avx512 or avx512_bf16: {}", name),
      "isa");
}

}  // namespace bouquet::rose::cpu
