#pragma once

#include <cstdint>

#include "rose/tensor/dtype.h"

namespace bouquet::rose {

/// Whether ConvertElements knows the pair.
bool CanConvert(Dtype from, Dtype to);

/// Converts `count` elements between float32, float16 and bfloat16, or copies equal types. Rounds
/// to nearest, ties to even; infinities and NaNs stay what they are, float16 denormals are exact.
/// `source` may have any alignment. CHECKs CanConvert.
void ConvertElements(const void* source, Dtype from, void* target, Dtype to, int64_t count);

}  // namespace bouquet::rose
