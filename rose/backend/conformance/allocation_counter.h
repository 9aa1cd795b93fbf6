#pragma once

#include <cstdint>

namespace bouquet::rose {

/// Calls of operator new in this program so far, by any thread.
int64_t CountAllocations();

}  // namespace bouquet::rose
