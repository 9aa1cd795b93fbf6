#include "rose/backend/cpu/make_kernels.h"

namespace bouquet::rose::cpu {

const Kernels& PlainKernels(Dtype dtype) { return TableFor<Isa::kPlain>(dtype); }

}  // namespace bouquet::rose::cpu
