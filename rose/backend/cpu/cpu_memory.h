#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace bouquet::rose::cpu {

/// Memory from the operating system, in huge pages where it gives them: weights are streamed once
/// per step, and with small pages the walk through page tables costs more than the reading. Nothing
/// is resident before it is touched.
class HugeMemory {
 public:
  HugeMemory() = default;
  ~HugeMemory();
  HugeMemory(HugeMemory&& other) noexcept;
  HugeMemory& operator=(HugeMemory&& other) noexcept;

  /// Empty when there is no memory.
  static HugeMemory Allocate(size_t bytes);

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// Memory on a cache line of its own; contents are not initialised.
struct AlignedFree {
  void operator()(void* data) const;
};
template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedFree>;

inline constexpr size_t kCacheLine = 64;
void* AlignedAllocate(size_t bytes);  // null when there is no memory

template <class T>
AlignedArray<T> MakeAlignedArray(size_t count) {
  return AlignedArray<T>(static_cast<T*>(AlignedAllocate(count * sizeof(T))));
}

}  // namespace bouquet::rose::cpu
