#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/metrics.h"
#include "base/status.h"
#include "ivy/dispatch/replica.h"

namespace bouquet::ivy {

/// The ready replica with the fewest queued tokens, the first of equals and never `except`; nullopt
/// when there is none. Pure.
std::optional<size_t> LeastQueued(std::span<const ReplicaLoad> loads,
                                  std::optional<size_t> except = std::nullopt);

/// Whether an answer says that another replica may do better: this one is lost, stops or is full.
/// Pure.
bool IsWorthAnotherReplica(const Result<ChunkRows>& rows);

/// The replicas of one model. Sends each chunk to the one with the fewest queued tokens, and once
/// more, to another one, when the first was lost, stops or is full. Thread: any.
class ReplicaPool {
 public:
  /// `identity`: of the model folder that the replicas must serve; empty: whatever the first one
  /// serves. `metrics` must outlive the pool.
  ReplicaPool(std::string identity, const std::string& model_name, Metrics& metrics);

  /// A pool of replicas that can be asked at once. Error: of Admit; kFailedPrecondition when there
  /// is none.
  static Result<std::unique_ptr<ReplicaPool>> Create(std::vector<std::unique_ptr<Replica>> replicas,
                                                     const std::string& model_name,
                                                     Metrics& metrics);

  /// Before the first Submit.
  void Add(std::unique_ptr<Replica> replica) { replicas_.push_back(std::move(replica)); }

  /// May a replica that says this of itself serve here? The first one says what the model is.
  /// Error: kFailedPrecondition when it serves another model folder, or admits less than the first.
  /// Another numerics fingerprint is only a warning.
  Status Admit(const ReplicaDescription& replica);
  /// Waits until a replica has been admitted. False when `stop` came first.
  bool WaitForModel(const std::stop_token& stop) const;

  /// As Replica::Submit. Error: also kUnavailable when no replica is ready.
  boost::asio::awaitable<Result<ChunkRows>> Submit(Chunk chunk);

  /// What the first replica that was admitted said. There must have been one (CHECK).
  const ReplicaDescription& Describe() const;
  size_t num_replicas() const { return replicas_.size(); }
  size_t num_ready() const;

  /// All replicas together; ready when one is. Never waits: health checks call it.
  ReplicaLoad Load() const;
  /// Whole seconds until what is queued now has been computed, at least 1.
  int32_t RetryAfterSeconds() const;

 private:
  std::optional<size_t> Pick(std::optional<size_t> except) const;

  const std::string identity_;
  Counter& sent_again_;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any admitted_;
  std::optional<ReplicaDescription> model_;  // set once

  std::vector<std::unique_ptr<Replica>>
      replicas_;  // last: they may ask to be admitted until they end
};

}  // namespace bouquet::ivy
