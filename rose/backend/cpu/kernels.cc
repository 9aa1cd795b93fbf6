#include "rose/backend/cpu/kernels.h"

#include "base/check.h"

namespace bouquet::rose::cpu {

const Kernels& KernelsFor(Isa isa, Dtype dtype) {
  CHECK(dtype == Dtype::kFloat32 || dtype == Dtype::kBfloat16);
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kPlain: return PlainKernels(dtype);
    case Isa::kAvx2: return Avx2Kernels(dtype);
    case Isa::kAvx512: return Avx512Kernels(dtype);
    case Isa::kAvx512Bf16: return Avx512Bf16Kernels(dtype);
  }
#endif
  CHECK(isa == Isa::kPlain);
  return PlainKernels(dtype);
}

}  // namespace bouquet::rose::cpu
