#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace bouquet::testing {

/// Waits for what another thread is about to do. False, not for ever, when it does not.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace bouquet::testing
