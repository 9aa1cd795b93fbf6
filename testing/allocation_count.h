#pragma once

#include <cstdint>

namespace bouquet::testing {

/// Calls of operator new so far, by all threads. Only in a test that depends on
/// `allocation_count`, which replaces operator new.
int64_t AllocationCount();

}  // namespace bouquet::testing
