#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "rose/batch.h"
#include "rose/engine.h"
#include "rose/lazy_tensor.h"
#include "testing/fake_row.h"
#include "tulip/step_engine.h"

namespace bouquet::testing {

struct FakeStepEngineOptions {
  int32_t width = 8;
  int32_t vocabulary_rows = 1000;
  int32_t max_positions = 512;
  int32_t max_tokens = 1024;
  int32_t max_sequences = 64;
  int32_t steps_under_way = 1;
  std::chrono::microseconds latency{0};  // of every step
  std::optional<int32_t> poison_id;      // a step that holds it fails as a whole
  StatusCode poison_error = StatusCode::kInternal;
  std::optional<int32_t> not_finite_id;         // a sequence that holds it gets a NaN
  bool not_finite_spreads = false;              // and so does every other one of the step
  std::optional<int32_t> largest_step_allowed;  // in sequences; larger steps fail ("out of memory")
  int32_t padded_to = 1;                        // tokens of a step are a multiple of
  std::vector<tulip::GraphUse> graph_use;       // after each step; the last holds on
};

/// An engine of rose::Engine's contract that computes FakeRow on a thread of its own. Checks what
/// it is asked: one caller at a time, no more steps alive than allowed, valid batches.
class FakeStepEngine final : public tulip::StepEngine {
 public:
  explicit FakeStepEngine(const FakeStepEngineOptions& options = {})
      : options_(options), slots_(static_cast<size_t>(options.steps_under_way)) {
    info_.device = "fake";
    info_.dtype = "float32";
    info_.numerics_fingerprint = "fake-1";
    info_.steps_under_way = options.steps_under_way;
    info_.limits = {options.vocabulary_rows, 2,
                    options.max_positions,   options.max_tokens,
                    options.max_sequences,   options.width,
                    options.max_sequences};
    for (Slot& slot : slots_) {
      slot.engine = this;
    }
    worker_ = std::thread([this] { Work(); });
  }

  ~FakeStepEngine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      held_ = false;
    }
    changed_.notify_all();
    worker_.join();
  }

  rose::LazyTensor Step(const rose::Batch& batch) override {
    CHECK(!stepping_.exchange(true));
    Slot& slot = slots_[next_slot_++ % slots_.size()];
    {
      const std::lock_guard lock(mutex_);
      CHECK(!slot.busy);  // at most steps_under_way results alive
      slot.busy = true;
      slot.ready = false;
      slot.batch = batch;
      queue_.push_back(&slot);
      ++num_steps_;
      largest_tokens_ = std::max(largest_tokens_, batch.num_tokens());
    }
    changed_.notify_all();
    CHECK(stepping_.exchange(false));
    return rose::LazyTensor(&slot);
  }

  const rose::EngineInfo& info() const override { return info_; }

  tulip::GraphUse graph_use() const override {
    const auto steps = static_cast<size_t>(num_steps());
    return steps == 0 || options_.graph_use.empty()
               ? tulip::GraphUse()
               : options_.graph_use[std::min(steps, options_.graph_use.size()) - 1];
  }
  int32_t PaddedTokens(int32_t num_tokens, int32_t num_sequences) const override {
    CHECK(num_sequences >= 1 && num_sequences <= num_tokens);  // as the real ones ask
    return (num_tokens + options_.padded_to - 1) / options_.padded_to * options_.padded_to;
  }

  /// Steps that start from now on do not end before Release.
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  /// Waits until `count` steps have been started since the engine was made.
  void WaitForSteps(int64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_steps_ >= count; });
  }

  int64_t num_steps() const {
    const std::lock_guard lock(mutex_);
    return num_steps_;
  }
  int32_t largest_tokens() const {
    const std::lock_guard lock(mutex_);
    return largest_tokens_;
  }
  /// True when a step has held a sequence that begins with `id`.
  bool HasComputed(int32_t id) const {
    const std::lock_guard lock(mutex_);
    return first_ids_.contains(id);
  }

 private:
  struct Slot final : rose::LazyTensor::Source {
    FakeStepEngine* engine = nullptr;
    rose::Batch batch;
    bool busy = false;
    bool ready = false;
    Status error;
    std::vector<float> rows;
    std::vector<uint32_t> offsets;
    std::vector<rose::RowStatus> statuses;
    model::RowBlock block;

    bool IsReady() const override {
      const std::lock_guard lock(engine->mutex_);
      return ready;
    }
    Result<rose::StepResult> Wait() override {
      std::unique_lock lock(engine->mutex_);
      engine->changed_.wait(lock, [this] { return ready; });
      busy = false;
      if (!error.ok()) {
        return error;
      }
      return rose::StepResult{std::span(&block, 1), statuses};
    }
  };

  void Work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || (!queue_.empty() && !held_); });
      if (queue_.empty()) {
        return;
      }
      Slot* slot = queue_.front();
      lock.unlock();
      if (options_.latency.count() > 0) {
        std::this_thread::sleep_for(options_.latency);
      }
      Compute(*slot);
      lock.lock();
      for (int32_t i = 0; i < slot->batch.num_sequences(); ++i) {
        first_ids_.insert(IdsOf(slot->batch, i).front());
      }
      // A test may hold the engine while a step is being computed.
      changed_.wait(lock, [this] { return !held_; });
      queue_.pop_front();
      slot->ready = true;
      lock.unlock();
      changed_.notify_all();
    }
  }

  static std::span<const int32_t> IdsOf(const rose::Batch& batch, int32_t sequence) {
    const auto begin = static_cast<size_t>(batch.sequence_offsets[static_cast<size_t>(sequence)]);
    const auto end = static_cast<size_t>(batch.sequence_offsets[static_cast<size_t>(sequence) + 1]);
    return std::span(batch.token_ids).subspan(begin, end - begin);
  }

  void Compute(Slot& slot) {
    const rose::Batch& batch = slot.batch;
    CHECK_LE(batch.num_tokens(), options_.max_tokens);
    CHECK_LE(batch.num_sequences(), options_.max_sequences);
    CHECK_LT(0, batch.num_sequences());
    slot.error = {};
    slot.rows.assign(
        static_cast<size_t>(batch.num_sequences()) * static_cast<size_t>(info_.limits.width), 0);
    slot.offsets.assign(1, 0);
    slot.statuses.clear();
    for (int32_t i = 0; i < batch.num_sequences(); ++i) {
      const std::span<const int32_t> ids = IdsOf(batch, i);
      const uint32_t asked = batch.outputs[static_cast<size_t>(i)].dimensions;
      const uint32_t dimensions = asked == 0 ? static_cast<uint32_t>(info_.limits.width) : asked;
      std::vector<float> row = FakeRow(ids, dimensions);
      slot.statuses.push_back(rose::RowStatus::kOk);
      if (options_.not_finite_id && std::ranges::count(ids, *options_.not_finite_id) > 0) {
        row[0] = std::numeric_limits<float>::quiet_NaN();
        slot.statuses.back() = rose::RowStatus::kNotFinite;
      }
      if (options_.poison_id && std::ranges::count(ids, *options_.poison_id) > 0) {
        slot.error = Status(options_.poison_error, "a poisoned sequence");
      }
      std::ranges::copy(row, slot.rows.begin() + ptrdiff_t{i} * info_.limits.width);
      const model::RowDtype dtype = batch.outputs[static_cast<size_t>(i)].dtype;
      if (dtype != model::RowDtype::kFloat32) {
        const std::vector<std::byte> bytes = FakeRowBytes(ids, RowBytes(dtype, dimensions));
        std::memcpy(slot.rows.data() + ptrdiff_t{i} * info_.limits.width, bytes.data(),
                    bytes.size());
      }
      slot.offsets.push_back(static_cast<uint32_t>(i) + 1);
    }
    if (options_.not_finite_spreads &&
        std::ranges::count(slot.statuses, rose::RowStatus::kNotFinite) > 0) {
      std::ranges::fill(slot.statuses, rose::RowStatus::kNotFinite);
    }
    if (options_.largest_step_allowed && batch.num_sequences() > *options_.largest_step_allowed) {
      slot.error = ResourceExhausted("out of memory");
    }
    slot.block = {model::Head::kDense, model::RowDtype::kFloat32,
                  static_cast<uint32_t>(info_.limits.width), slot.offsets,
                  std::as_bytes(std::span<const float>(slot.rows))};
  }

  const FakeStepEngineOptions options_;
  rose::EngineInfo info_;
  std::vector<Slot> slots_;
  size_t next_slot_ = 0;
  std::atomic<bool> stepping_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> queue_;
  std::set<int32_t> first_ids_;
  int64_t num_steps_ = 0;
  int32_t largest_tokens_ = 0;
  bool held_ = false;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace bouquet::testing
