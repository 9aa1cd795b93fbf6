#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace bouquet {

/// Passes values from any threads to any threads, first come first served in each lane, and never
/// holds more than `capacity` in one. The first lane goes first; every `kPopsPerLastLaneTurn`-th
/// Pop starts at the last lane, so that no lane starves.
template <class T>
class BoundedQueue {
 public:
  static constexpr size_t kPopsPerLastLaneTurn = 8;

  explicit BoundedQueue(size_t capacity, size_t num_lanes = 1)
      : capacity_(capacity), lanes_(num_lanes) {
    CHECK_LT(size_t{0}, capacity);
    CHECK_LT(size_t{0}, num_lanes);
  }

  /// Never waits. False when the lane is full or the queue is closed; `value` is then untouched.
  [[nodiscard]] bool TryPush(T&& value, size_t lane = 0) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || lanes_[lane].size() >= capacity_) {
        return false;
      }
      lanes_[lane].push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  /// Puts a value that Pop gave at the end of its lane. Never refused: it held a place just before,
  /// so a lane is over its capacity by the number of consumers at most.
  void PutBack(T value, size_t lane = 0) {
    {
      const std::lock_guard lock(mutex_);
      lanes_[lane].push_back(std::move(value));
    }
    not_empty_.notify_one();
  }

  /// Waits for a value. nullopt once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (std::deque<T>* lane = NextLane()) {
        std::optional<T> value(std::move(lane->front()));
        lane->pop_front();
        return value;
      }
      if (closed_) {
        return std::nullopt;
      }
      not_empty_.wait(lock);
    }
  }

  /// Refuses further pushes and wakes all who wait. What the queue holds is still given out.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    size_t total = 0;
    for (const std::deque<T>& lane : lanes_) {
      total += lane.size();
    }
    return total;
  }

 private:
  // Requires the lock. Null when every lane is empty.
  std::deque<T>* NextLane() {
    std::deque<T>* first = nullptr;
    std::deque<T>* last = nullptr;
    for (std::deque<T>& lane : lanes_) {
      if (!lane.empty()) {
        first = first == nullptr ? &lane : first;
        last = &lane;
      }
    }
    if (first == last) {
      pops_ = 0;  // nobody is passed over
      return first;
    }
    return ++pops_ % kPopsPerLastLaneTurn == 0 ? last : first;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_empty_;
  std::vector<std::deque<T>> lanes_;
  size_t pops_ = 0;
  bool closed_ = false;
};

}  // namespace bouquet
