#include "rose/backend/cpu/make_kernels.h"

namespace bouquet::rose::cpu {

const Kernels& Avx2Kernels(Dtype dtype) { return TableFor<Isa::kAvx2>(dtype); }

}  // namespace bouquet::rose::cpu
