#pragma once

#include <cstdint>

namespace bouquet::rose::cpu {

/// A bfloat16 in memory: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

}  // namespace bouquet::rose::cpu
