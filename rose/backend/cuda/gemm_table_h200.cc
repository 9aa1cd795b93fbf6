#include "rose/backend/cuda/gemm_table_h200.h"

namespace bouquet::rose::cuda {

const std::string_view kH200GemmTable =
#include "rose/backend/cuda/gemm_table_h200.inc"
    ;

}  // namespace bouquet::rose::cuda
