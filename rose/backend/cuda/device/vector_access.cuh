#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace bouquet::rose::cuda {

/// kVec consecutive values of a row as floats: one 16-byte access for 8 bfloat16 or 4 float.
template <int kVec>
struct Values {
  float at[kVec];
};

template <int kVec>
__device__ __forceinline__ Values<kVec> Load(const __nv_bfloat16* from) {
  Values<kVec> values;
  if constexpr (kVec == 8) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // a bfloat16 is the upper half of a float
      values.at[2 * i] = __uint_as_float(words[i] << 16);
      values.at[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      values.at[i] = __bfloat162float(from[i]);
    }
  }
  return values;
}

template <int kVec>
__device__ __forceinline__ void Store(__nv_bfloat16* to, const Values<kVec>& values) {
  if constexpr (kVec == 8) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(values.at[2 * i], values.at[2 * i + 1]);
      words[i] = *reinterpret_cast<const uint32_t*>(&pair);
    }
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  } else {
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      to[i] = __float2bfloat16_rn(values.at[i]);
    }
  }
}

template <int kVec>
__device__ __forceinline__ Values<kVec> Load(const float* from) {
  Values<kVec> values;
  if constexpr (kVec % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kVec; i += 4) {
      const float4 raw = *reinterpret_cast<const float4*>(from + i);
      values.at[i] = raw.x;
      values.at[i + 1] = raw.y;
      values.at[i + 2] = raw.z;
      values.at[i + 3] = raw.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      values.at[i] = from[i];
    }
  }
  return values;
}

}  // namespace bouquet::rose::cuda
