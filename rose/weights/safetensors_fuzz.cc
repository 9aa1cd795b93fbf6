// Any bytes as a safetensors file: the header is read or refused, never more. What was accepted
// must cover the data section exactly. Does not cover: mapping a file, conversion of the values.
#include <cstdint>
#include <span>

#include "base/check.h"
#include "rose/weights/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  const auto header = bouquet::rose::ParseSafetensorsHeader(file, "fuzzed");
  if (!header.ok()) {
    CHECK(!header.status().message().empty());
    return 0;
  }
  uint64_t covered = 0;
  for (const auto& tensor : header->tensors) {
    CHECK_EQ(tensor.begin, covered);
    CHECK_GE(tensor.num_elements, 0);
    covered = tensor.end;
  }
  CHECK_EQ(header->data_offset + covered, size);
  return 0;
}
