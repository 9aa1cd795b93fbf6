#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bouquet::rose {

enum class Dtype : uint8_t { kFloat32, kFloat16, kBfloat16, kInt64, kInt32, kUint8 };

constexpr size_t DtypeBytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return 4;
    case Dtype::kFloat16: return 2;
    case Dtype::kBfloat16: return 2;
    case Dtype::kInt64: return 8;
    case Dtype::kInt32: return 4;
    case Dtype::kUint8: return 1;
  }
  return 0;
}

constexpr std::string_view DtypeName(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return "float32";
    case Dtype::kFloat16: return "float16";
    case Dtype::kBfloat16: return "bfloat16";
    case Dtype::kInt64: return "int64";
    case Dtype::kInt32: return "int32";
    case Dtype::kUint8: return "uint8";
  }
  return "unknown";
}

}  // namespace bouquet::rose
