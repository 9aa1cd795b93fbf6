#include "rose/backend/cpu/cpu_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

namespace bouquet::rose::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

HugeMemory::~HugeMemory() {
  if (data_ != nullptr) {
    munmap(data_, bytes_);
  }
}

HugeMemory::HugeMemory(HugeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

HugeMemory& HugeMemory::operator=(HugeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HugeMemory HugeMemory::Allocate(size_t bytes) {
  HugeMemory memory;
  const size_t whole = RoundUp(bytes, kHugePage);
  void* data = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return memory;
  }
  // A wish: refused on kernels without huge pages, where small ones serve as well.
  madvise(data, whole, MADV_HUGEPAGE);
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = whole;
  return memory;
}

void AlignedFree::operator()(void* data) const { std::free(data); }

void* AlignedAllocate(size_t bytes) {
  return std::aligned_alloc(kCacheLine, RoundUp(bytes == 0 ? 1 : bytes, kCacheLine));
}

}  // namespace bouquet::rose::cpu
