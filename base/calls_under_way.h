#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bouquet {

/// Keeps what asynchronous calls need until the library that makes them is done with it, and never
/// lets a thread of that library be the last to hold it: with gRPC the last context of a channel
/// ends the library's threads, which must not be asked to wait for themselves. Callbacks hold a
/// plain pointer.
template <class Call>
class CallsUnderWay {
 public:
  /// Before the call begins. Lets go of those that have ended. Not on a thread of the library.
  void Add(const std::shared_ptr<Call>& call) {
    std::vector<std::shared_ptr<Call>> ended;  // destroyed after the lock
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
    under_way_.emplace(call.get(), call);
  }

  /// The last thing that the library's callback does with the call, and with this.
  void End(const Call* call) {
    const std::lock_guard lock(mutex_);
    auto node = under_way_.extract(call);
    ended_.push_back(std::move(node.mapped()));
    if (under_way_.empty()) {
      none_left_.notify_all();
    }
  }

  std::vector<std::shared_ptr<Call>> List() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Call>> calls;
    calls.reserve(under_way_.size());
    for (const auto& [key, call] : under_way_) {
      calls.push_back(call);
    }
    return calls;
  }

  /// Lets go of those that have ended. Not on a thread of the library.
  void DropEnded() {
    std::vector<std::shared_ptr<Call>> ended;
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }

  /// Waits until all have ended, and lets go of them.
  void WaitUntilNone() {
    {
      std::unique_lock lock(mutex_);
      none_left_.wait(lock, [this] { return under_way_.empty(); });
    }
    DropEnded();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  std::unordered_map<const Call*, std::shared_ptr<Call>> under_way_;
  std::vector<std::shared_ptr<Call>> ended_;
};

}  // namespace bouquet
