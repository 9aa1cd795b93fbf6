#include "rose/backend/cpu/worker_pool.h"

#include <chrono>

#include "base/check.h"
#include "rose/backend/cpu/processors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bouquet::rose::cpu {
namespace {

constexpr int kChunkBits = 24;
constexpr uint64_t kChunkMask = (uint64_t{1} << kChunkBits) - 1;
constexpr std::chrono::microseconds kSpin{50};
// How many rounds of pausing between two looks at the clock: about 2 µs.
constexpr int kRoundsPerLook = 64;

uint64_t PackJob(uint64_t generation, uint64_t num_chunks, uint64_t next) {
  return generation << (2 * kChunkBits) | num_chunks << kChunkBits | next;
}
uint64_t ChunksOf(uint64_t job) { return job >> kChunkBits & kChunkMask; }
uint64_t NextOf(uint64_t job) { return job & kChunkMask; }

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/// Spins until `done` or for kSpin. Returns the last done().
template <class Done>
bool SpinUntil(const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kRoundsPerLook; ++i) {
      if (done()) {
        return true;
      }
      Pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return done();
}

}  // namespace

WorkerPool::WorkerPool(int32_t workers) {
  CHECK_GE(workers, 1);
  for (int32_t worker = 1; worker < workers; ++worker) {
    helpers_.emplace_back([this, worker] { HelperLoop(worker); });
  }
  step_worker_ = std::thread([this] { StepLoop(); });
  step_thread_ = step_worker_.get_id();
}

WorkerPool::~WorkerPool() {
  WaitUntilIdle();
  stopping_.store(true);
  posted_.fetch_add(1);
  posted_.notify_all();
  wake_.fetch_add(1);
  wake_.notify_all();
  step_worker_.join();
  for (std::thread& helper : helpers_) {
    helper.join();
  }
}

Status WorkerPool::BindTo(std::span<const int32_t> processors) {
  CHECK_LE(static_cast<size_t>(size()), processors.size());
  RETURN_IF_ERROR(BindThread(step_worker_.native_handle(), processors[0]));
  for (size_t i = 0; i < helpers_.size(); ++i) {
    RETURN_IF_ERROR(BindThread(helpers_[i].native_handle(), processors[i + 1]));
  }
  return {};
}

void WorkerPool::PostStep(const std::function<void()>& step) {
  CHECK(IsIdle());
  step_ = step;
  in_step_.store(true);
  posted_.fetch_add(1, std::memory_order_release);
  posted_.notify_one();
  // From here, not from worker 0: the helpers wake while it wakes.
  if (!helpers_.empty()) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
}

void WorkerPool::WaitUntilIdle() const {
  const uint32_t target = posted_.load(std::memory_order_acquire);
  for (uint32_t ended = ended_.load(std::memory_order_acquire); ended != target;
       ended = ended_.load(std::memory_order_acquire)) {
    ended_.wait(ended, std::memory_order_acquire);
  }
}

bool WorkerPool::IsInStep() const {
  return in_step_.load(std::memory_order_relaxed) && std::this_thread::get_id() == step_thread_;
}

void WorkerPool::StepLoop() {
  for (uint32_t seen = 0;; ++seen) {
    WaitForPost(seen);
    if (stopping_.load()) {
      return;
    }
    step_();
    in_step_.store(false);
    ended_.fetch_add(1, std::memory_order_release);
    ended_.notify_all();
  }
}

void WorkerPool::WaitForPost(uint32_t seen) const {
  const auto is_posted = [&] { return posted_.load(std::memory_order_acquire) != seen; };
  while (!is_posted()) {
    posted_.wait(seen, std::memory_order_acquire);
  }
}

void WorkerPool::Run(int64_t num_chunks, const void* context, Call call) {
  CHECK_LT(num_chunks, int64_t{1} << kChunkBits);
  if (num_chunks <= 1 || helpers_.empty()) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      call(context, chunk, 0);
    }
    return;
  }
  context_ = context;
  call_ = call;
  chunks_done_.store(0, std::memory_order_relaxed);
  generation_ = (generation_ + 1) & 0xFFFF;
  job_.store(PackJob(generation_, static_cast<uint64_t>(num_chunks), 0));
  if (sleepers_.load() > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  TakeChunks(0);
  const auto is_done = [&] { return chunks_done_.load(std::memory_order_acquire) == num_chunks; };
  if (SpinUntil(is_done)) {
    return;
  }
  // A helper holds the last chunk and may have been put aside by the kernel.
  for (int64_t done = chunks_done_.load(std::memory_order_acquire); done != num_chunks;
       done = chunks_done_.load(std::memory_order_acquire)) {
    chunks_done_.wait(done, std::memory_order_acquire);
  }
}

bool WorkerPool::TakeChunks(int32_t worker) {
  bool took_any = false;
  while (true) {
    const uint64_t looked = job_.load(std::memory_order_acquire);
    if (NextOf(looked) >= ChunksOf(looked)) {
      return took_any;
    }
    const uint64_t taken = job_.fetch_add(1, std::memory_order_acq_rel);
    if (NextOf(taken) >= ChunksOf(taken)) {
      return took_any;
    }
    took_any = true;
    call_(context_, static_cast<int64_t>(NextOf(taken)), worker);
    const int64_t done = chunks_done_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (worker != 0 && done == static_cast<int64_t>(ChunksOf(taken))) {
      chunks_done_.notify_one();
    }
  }
}

void WorkerPool::HelperLoop(int32_t worker) {
  while (true) {
    const auto has_work = [&] {
      const uint64_t job = job_.load();
      return NextOf(job) < ChunksOf(job) || stopping_.load(std::memory_order_relaxed);
    };
    // The end of the step ends the spinning too: whoever waits for its result needs a core then.
    if (SpinUntil([&] { return has_work() || !in_step_.load(); }) && has_work() &&
        !stopping_.load()) {
      TakeChunks(worker);
      continue;
    }
    const uint32_t seen = wake_.load();
    sleepers_.fetch_add(1);
    if (!has_work()) {
      wake_.wait(seen);
    }
    sleepers_.fetch_sub(1);
    if (stopping_.load()) {
      return;
    }
  }
}

}  // namespace bouquet::rose::cpu
