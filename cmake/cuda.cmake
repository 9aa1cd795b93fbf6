# The CUDA language for the preset `cuda`. The toolkit gives nvcc and the static runtime; cuBLASLt is opened at run time, so
# that a binary needs no CUDA library beside the driver to start.
find_program(NVCC nvcc HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
if(NOT NVCC)
  message(FATAL_ERROR "The preset cuda needs nvcc 13.0 or later: put it in PATH or set CUDA_HOME")
endif()
set(CMAKE_CUDA_COMPILER "${NVCC}")
set(CMAKE_CUDA_ARCHITECTURES 90a-real)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20, so the standard can only be asked for after the language, with its flag.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit 13.0 REQUIRED)
# -fmad stays on, as everywhere: nothing relies on a product being rounded before it is added.
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra -Werror=all-warnings")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")

# Programs also look for libraries in lib/ beside them, which is how a bundle carries them; the old tag holds for what the
# libraries need themselves too.
set(CMAKE_BUILD_RPATH "$ORIGIN/lib")
add_link_options(-Wl,--disable-new-dtags)
