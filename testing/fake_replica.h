#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "ivy/dispatch/replica.h"
#include "ivy/dispatch/resumption.h"
#include "testing/fake_row.h"

namespace bouquet::testing {

inline ivy::ReplicaDescription FakeReplicaDescription() {
  ivy::ReplicaDescription description;
  description.model_name = "fake";
  description.identity = "identity-1";
  description.numerics_fingerprint = "fake-1";
  description.width = 8;
  description.vocabulary_rows = 1000;
  description.model_max_tokens = 64;
  description.max_input_tokens = 64;
  description.step_tokens = 32;
  return description;
}

/// A replica that answers FakeRow at once, or when it is told to, or with an error.
class FakeReplica final : public ivy::Replica {
 public:
  explicit FakeReplica(ivy::ReplicaDescription description = FakeReplicaDescription())
      : description_(std::move(description)) {}

  std::string_view name() const override { return "fake"; }
  std::optional<ivy::ReplicaDescription> Describe() const override { return description_; }

  boost::asio::awaitable<Result<ivy::ChunkRows>> Submit(ivy::Chunk chunk) override {
    auto hold = std::make_shared<ivy::Resumption>();
    Status refusal;
    {
      const std::lock_guard lock(mutex_);
      const int number = num_chunks_++;
      chunk_sizes_.push_back(chunk.sequences.size());
      largest_under_way_ = std::max(largest_under_way_, ++under_way_);
      if (holding_) {
        held_.push_back(hold);
      } else {
        hold->Resume();
      }
      if (refuse_) {
        refusal = refuse_(number);
      }
    }
    if (refusal.ok()) {
      const std::stop_callback on_cancel(chunk.cancelled, [hold] { hold->Resume(); });
      co_await ivy::Resumption::Wait(hold, chunk.deadline);
    }
    {
      const std::lock_guard lock(mutex_);
      --under_way_;
    }
    if (!refusal.ok()) {
      co_return refusal;
    }
    last_request_id_ = chunk.request_id;
    last_trace_ = chunk.trace;
    co_return Answer(chunk);
  }

  ivy::ReplicaLoad Load() const override {
    const std::lock_guard lock(mutex_);
    return load_;
  }

  /// Chunks are answered only after Release, or when they are cancelled.
  void Hold() {
    const std::lock_guard lock(mutex_);
    holding_ = true;
  }
  void Release() {
    {
      const std::lock_guard lock(mutex_);
      holding_ = false;
    }
    ResumeHeld();
  }
  /// Asked for each chunk by its number in order of arrival; not OK refuses it.
  void RefuseWith(std::function<Status(int)> refuse) { refuse_ = std::move(refuse); }
  /// Sequences that begin with this id fail alone.
  void FailSequencesOf(int32_t id, Status status) {
    failing_id_ = id;
    failure_ = std::move(status);
  }
  void SetLoad(ivy::ReplicaLoad load) {
    const std::lock_guard lock(mutex_);
    load_ = std::move(load);
  }

  int num_chunks() const {
    const std::lock_guard lock(mutex_);
    return num_chunks_;
  }
  int largest_under_way() const {
    const std::lock_guard lock(mutex_);
    return largest_under_way_;
  }
  const std::string& last_request_id() const { return last_request_id_; }  // of an answer
  const ivy::TraceContext& last_trace() const { return last_trace_; }
  std::vector<size_t> chunk_sizes() const {
    const std::lock_guard lock(mutex_);
    return chunk_sizes_;
  }

 private:
  // Without the lock: a coroutine of this very thread goes on at once, and may come back here.
  void ResumeHeld() {
    std::vector<std::shared_ptr<ivy::Resumption>> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (const std::shared_ptr<ivy::Resumption>& one : held) {
      one->Resume();
    }
  }

  ivy::ChunkRows Answer(const ivy::Chunk& chunk) const {
    ivy::ChunkRows rows;
    rows.dimensions = chunk.output.dimensions == 0 ? static_cast<uint32_t>(description_.width)
                                                   : chunk.output.dimensions;
    const bool cancelled = chunk.cancelled.stop_requested();
    for (const text::TokenSequence& sequence : chunk.sequences) {
      std::vector<float> row = FakeRow(sequence.ids, rows.dimensions);
      rows.statuses.emplace_back();
      if (sequence.ids.front() == failing_id_) {
        rows.statuses.back() = failure_;
        std::ranges::fill(row, 0);
      }
      if (cancelled) {
        rows.statuses.back() = Cancelled("cancelled in the queue");
      }
      rows.values.insert(rows.values.end(), row.begin(), row.end());
      rows.queue_us += 10;
      rows.step_us += 100;
    }
    return rows;
  }

  const ivy::ReplicaDescription description_;
  std::function<Status(int)> refuse_;
  std::string last_request_id_;
  ivy::TraceContext last_trace_;
  int32_t failing_id_ = -1;
  Status failure_;

  mutable std::mutex mutex_;
  ivy::ReplicaLoad load_{.queued_tokens = 0, .tokens_per_second = 1000, .ready = true};
  std::vector<std::shared_ptr<ivy::Resumption>> held_;
  std::vector<size_t> chunk_sizes_;
  int num_chunks_ = 0;
  int under_way_ = 0;
  int largest_under_way_ = 0;
  bool holding_ = false;
};

}  // namespace bouquet::testing
