#include "rose/backend/cpu/make_kernels.h"

namespace bouquet::rose::cpu {

const Kernels& Avx512Bf16Kernels(Dtype dtype) { return TableFor<Isa::kAvx512Bf16>(dtype); }

}  // namespace bouquet::rose::cpu
