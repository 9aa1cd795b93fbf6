#include "rose/backend/cpu/make_kernels.h"

namespace bouquet::rose::cpu {

const Kernels& Avx512Kernels(Dtype dtype) { return TableFor<Isa::kAvx512>(dtype); }

}  // namespace bouquet::rose::cpu
