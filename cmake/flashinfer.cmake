# flashinfer_headers: the FlashInfer, CUTLASS and CCCL headers that `./dev setup` fetched (tools/setup/wheels.txt).
set(BOUQUET_FLASHINFER "${PROJECT_SOURCE_DIR}/build/wheels/flashinfer" CACHE PATH "the unpacked flashinfer-python wheel")
if(NOT EXISTS "${BOUQUET_FLASHINFER}/include/flashinfer/attention/prefill.cuh")
  message(FATAL_ERROR "The preset cuda needs FlashInfer's headers, which are not in ${BOUQUET_FLASHINFER}: run ./dev setup")
endif()
add_library(flashinfer_headers INTERFACE)
# As SYSTEM, libcudacxx of the wheel still comes before the toolkit's, which nvcc appends last.
target_include_directories(flashinfer_headers SYSTEM INTERFACE
  "${BOUQUET_FLASHINFER}/libcudacxx" "${BOUQUET_FLASHINFER}/include" "${BOUQUET_FLASHINFER}/cutlass"
  "${BOUQUET_FLASHINFER}/cutlass_util")
# What its templates make nvcc say: host calls in device code never reached, unused variables, an unsigned compared with zero.
target_compile_options(flashinfer_headers INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=20012,177,186>)
