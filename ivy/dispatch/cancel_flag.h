#pragma once

#include <atomic>
#include <memory>

namespace bouquet::ivy {

/// Set by whoever learns that the answer is no longer wanted (the client hung up); read by the
/// queue when the next batch is formed. Shared, because the step under way and the connection end
/// in either order.
using CancelFlag = std::shared_ptr<std::atomic<bool>>;

}  // namespace bouquet::ivy
