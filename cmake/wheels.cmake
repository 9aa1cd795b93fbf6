# Finds what `./dev setup` fetched from the package index; fetches nothing itself.
#   BOUQUET_WHEELS   folder with one sub-folder per wheel, named after it (default: build/wheels)
set(BOUQUET_WHEELS "${PROJECT_SOURCE_DIR}/build/wheels" CACHE PATH "where ./dev setup put the wheels")

# oneDNN 3.2 built with GNU OpenMP: plain g++, no other runtime.
set(onednn_root "${BOUQUET_WHEELS}/onednn")
if(NOT EXISTS "${onednn_root}/lib/libdnnl.so.3" OR NOT EXISTS "${onednn_root}/include/oneapi/dnnl/dnnl.hpp")
  message(FATAL_ERROR "oneDNN is not in ${onednn_root}: run ./dev setup")
endif()
add_library(onednn SHARED IMPORTED)
set_target_properties(onednn PROPERTIES IMPORTED_LOCATION "${onednn_root}/lib/libdnnl.so.3" IMPORTED_SONAME libdnnl.so.3)
target_include_directories(onednn SYSTEM INTERFACE "${onednn_root}/include")
# g++ brings the OpenMP runtime that this library was built with. clang, used for fuzzing only, has another one; no fuzz
# target reaches the engine's backends.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(onednn INTERFACE OpenMP::OpenMP_CXX)
endif()
