#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"

namespace bouquet::rose::cpu {

/// The threads of a CPU backend. Worker 0 runs posted steps in order and shares the work of each op
/// out to the others in chunks that whoever is free takes.
///
/// A worker that sleeps or that the kernel has put aside is not waited for: it simply takes no
/// chunk. So nothing stalls when cores are busy with other threads. Between the ops of a step
/// helpers spin for at most 50 µs; when the step ends they stop, because whoever waits for its
/// result needs a core. Between steps everybody sleeps.
class WorkerPool {
 public:
  /// workers ≥ 1, worker 0 included.
  explicit WorkerPool(int32_t workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int32_t size() const { return static_cast<int32_t>(helpers_.size()) + 1; }

  /// Binds worker i to processors[i], for good. Needs a processor for each worker. Error: kInternal
  /// with the system's reason.
  Status BindTo(std::span<const int32_t> processors);

  /// Runs `step` on worker 0 and returns at once. The one before must have ended.
  void PostStep(const std::function<void()>& step);
  /// Whether every posted step has ended. Thread: any.
  bool IsIdle() const {
    return ended_.load(std::memory_order_acquire) == posted_.load(std::memory_order_acquire);
  }
  /// Blocks until the step that was posted last has ended. Thread: any.
  void WaitUntilIdle() const;
  /// True on worker 0, inside a step.
  bool IsInStep() const;

  /// Calls body(chunk, worker) for each chunk of 0 .. num_chunks - 1 and returns when all have
  /// returned. Thread: worker 0, inside a step.
  template <class Body>
  void ForEachChunk(int64_t num_chunks, const Body& body) {
    Run(num_chunks, &body, [](const void* context, int64_t chunk, int32_t worker) {
      (*static_cast<const Body*>(context))(chunk, worker);
    });
  }

 private:
  using Call = void (*)(const void* context, int64_t chunk, int32_t worker);

  void Run(int64_t num_chunks, const void* context, Call call);
  void StepLoop();
  void HelperLoop(int32_t worker);
  bool TakeChunks(int32_t worker);
  void WaitForPost(uint32_t seen) const;

  // The job under way: generation (16 bits), number of chunks (24), next chunk (24). One word, so
  // that a helper that comes late can never take a chunk of one job for one of another. `context_`
  // and `call_` may change only when every chunk taken has been finished.
  alignas(64) std::atomic<uint64_t> job_{0};
  alignas(64) std::atomic<int64_t> chunks_done_{0};
  const void* context_ = nullptr;
  Call call_ = nullptr;
  uint64_t generation_ = 0;

  alignas(64) std::atomic<uint32_t> wake_{0};  // helpers sleep on this
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> in_step_{false};
  std::atomic<bool> stopping_{false};

  alignas(64) std::atomic<uint32_t> posted_{0};         // worker 0 sleeps on this
  alignas(64) mutable std::atomic<uint32_t> ended_{0};  // whoever waits for a step sleeps on this
  std::function<void()> step_;
  std::thread::id step_thread_;

  std::vector<std::thread> helpers_;
  std::thread step_worker_;
};

}  // namespace bouquet::rose::cpu
