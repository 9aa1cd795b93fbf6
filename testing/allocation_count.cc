// In a file of its own: where the compiler sees both sides, it takes free for a mismatch of new.
#include "testing/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations = 0;

void* CountedAllocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (data == nullptr) {
    std::abort();
  }
  return data;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return CountedAllocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return CountedAllocate(bytes, static_cast<std::size_t>(alignment));
}
// The library's own nothrow forms would come from elsewhere under the address sanitizer.
void* operator new(std::size_t bytes, const std::nothrow_t& /*nothrow*/) noexcept {
  return CountedAllocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void operator delete(void* data, const std::nothrow_t& /*nothrow*/) noexcept { std::free(data); }
void operator delete(void* data) noexcept { std::free(data); }
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t /*bytes*/) noexcept { std::free(data); }
void operator delete(void* data, std::size_t /*bytes*/) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t /*alignment*/) noexcept { std::free(data); }
void operator delete(void* data, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(data);
}

namespace bouquet::testing {

int64_t AllocationCount() { return allocations; }

}  // namespace bouquet::testing
