#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace bouquet {

/// A value that is exchanged as a whole while others read it: whoever has taken the current one
/// keeps it, whatever comes after. Thread: any. Current is a lock that is held for one copy of a
/// pointer, about 20 ns.
template <class T>
class Snapshot {
 public:
  explicit Snapshot(T value) : value_(std::make_shared<const T>(std::move(value))) {}

  std::shared_ptr<const T> Current() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

  void Replace(T value) {
    auto next = std::make_shared<const T>(std::move(value));
    const std::lock_guard lock(mutex_);
    value_.swap(next);  // the old one, if nobody keeps it, goes after the lock
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace bouquet
