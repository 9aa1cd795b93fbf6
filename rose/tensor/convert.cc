#include "rose/tensor/convert.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "base/check.h"

namespace bouquet::rose {
namespace {

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {  // zero or denormal: mantissa · 2⁻²⁴, exact in float32
    const float value = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  if (magnitude >= 0x477FF000U) {  // from 65520 on rounds to infinity
    return static_cast<uint16_t>(sign | 0x7C00U);
  }
  if (magnitude < 0x38800000U) {  // below 2⁻¹⁴: denormal; adding 0.5 rounds at bit 2⁻²⁴
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000U));
  }
  const uint32_t odd = (magnitude >> 13) & 1U;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xFFFU + odd) >> 13));
}

float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t FloatToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

bool IsFloating(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16;
}

template <class From, class To, class Function>
void ConvertEach(const void* source, void* target, int64_t count, Function function) {
  const auto* in = static_cast<const std::byte*>(source);
  auto* out = static_cast<std::byte*>(target);
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, in + i * static_cast<int64_t>(sizeof value), sizeof value);
    const To converted = function(value);
    std::memcpy(out + i * static_cast<int64_t>(sizeof converted), &converted, sizeof converted);
  }
}

}  // namespace

bool CanConvert(Dtype from, Dtype to) { return from == to || (IsFloating(from) && IsFloating(to)); }

void ConvertElements(const void* source, Dtype from, void* target, Dtype to, int64_t count) {
  CHECK(CanConvert(from, to));
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(count) * DtypeBytes(from));
  } else if (from == Dtype::kFloat16 && to == Dtype::kFloat32) {
    ConvertEach<uint16_t, float>(source, target, count, HalfToFloat);
  } else if (from == Dtype::kBfloat16 && to == Dtype::kFloat32) {
    ConvertEach<uint16_t, float>(source, target, count, Bf16ToFloat);
  } else if (from == Dtype::kFloat32 && to == Dtype::kBfloat16) {
    ConvertEach<float, uint16_t>(source, target, count, FloatToBf16);
  } else if (from == Dtype::kFloat32 && to == Dtype::kFloat16) {
    ConvertEach<float, uint16_t>(source, target, count, FloatToHalf);
  } else if (from == Dtype::kFloat16) {
    ConvertEach<uint16_t, uint16_t>(source, target, count,
                                    [](uint16_t x) { return FloatToBf16(HalfToFloat(x)); });
  } else {
    ConvertEach<uint16_t, uint16_t>(source, target, count,
                                    [](uint16_t x) { return FloatToHalf(Bf16ToFloat(x)); });
  }
}

}  // namespace bouquet::rose
