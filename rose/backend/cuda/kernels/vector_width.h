#pragma once

#include <cstdint>
#include <initializer_list>

namespace bouquet::rose::cuda {

/// True when rows of bfloat16 can be read 16 bytes at a time: every stride and width (elements) a
/// multiple of 8, every address of 16. Null pointers and zero strides belong to absent matrices.
inline bool IsVectorised(std::initializer_list<int64_t> sizes,
                         std::initializer_list<const void*> addresses) {
  for (const int64_t size : sizes) {
    if (size % 8 != 0) {
      return false;
    }
  }
  for (const void* address : addresses) {
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace bouquet::rose::cuda
