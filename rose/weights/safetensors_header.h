#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bouquet::rose {

/// One entry of a safetensors header.
struct StoredTensor {
  std::string name;
  std::string dtype;           // as written: "F32", "BF16", "I64", …
  std::vector<int64_t> shape;  // empty for a scalar
  int64_t num_elements = 0;
  uint64_t begin = 0;  // bytes from the start of the data section
  uint64_t end = 0;
};

/// A safetensors file is: 8 bytes little-endian header length, the header (JSON), the data section.
struct SafetensorsHeader {
  uint64_t data_offset = 0;           // of the data section, from the start of the file
  std::vector<StoredTensor> tensors;  // in the order of their data
};

/// "[2, 384]".
std::string ShapeText(std::span<const int64_t> shape);

/// Checks and reads the header of a whole file in memory. Strict: the tensors must cover the data
/// section exactly, without gap or overlap, each as long as dtype and shape say, and names must not
/// repeat. `source` names the file in errors. Error: kInvalidArgument that names tensor and values.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                 std::string_view source);

}  // namespace bouquet::rose
