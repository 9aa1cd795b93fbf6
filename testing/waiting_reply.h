#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tulip/chunk_reply.h"

namespace bouquet::testing {

/// A reply slot that a test thread waits for.
class WaitingReply final : public tulip::ChunkReply {
 public:
  using ChunkReply::ChunkReply;

  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return completions_ > 0; });
  }
  int completions() const {
    const std::lock_guard lock(mutex_);
    return completions_;
  }

 protected:
  void OnComplete() override {
    {
      const std::lock_guard lock(mutex_);
      ++completions_;
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int completions_ = 0;
};

}  // namespace bouquet::testing
