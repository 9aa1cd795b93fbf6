#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/status.h"
#include "ivy/dispatch/replica.h"

namespace bouquet::ivy {

/// The ready replica with the fewest queued tokens, the first of equals; nullopt when none is
/// ready. Pure.
std::optional<size_t> LeastQueued(std::span<const ReplicaLoad> loads);

/// The replicas of one model. Sends each chunk to the one with the fewest queued tokens. Thread:
/// any.
class ReplicaPool {
 public:
  /// Error: kFailedPrecondition when there is no replica, when one serves another model folder, or
  /// when one admits less than the first. Another numerics fingerprint is only a warning.
  static Result<std::unique_ptr<ReplicaPool>> Create(
      std::vector<std::unique_ptr<Replica>> replicas);

  /// As Replica::Submit. Error: also kUnavailable when no replica is ready.
  boost::asio::awaitable<Result<ChunkRows>> Submit(Chunk chunk);

  /// Cancels what was submitted with this flag, on every replica.
  void Cancel(const CancelFlag& flag);

  /// What all have in common; the rest is the first replica's.
  const ReplicaDescription& Describe() const { return replicas_.front()->Describe(); }
  size_t num_replicas() const { return replicas_.size(); }

  /// All replicas together; ready when one is. Never waits: health checks call it.
  ReplicaLoad Load() const;
  /// Whole seconds until what is queued now has been computed, at least 1.
  int32_t RetryAfterSeconds() const;

 private:
  explicit ReplicaPool(std::vector<std::unique_ptr<Replica>> replicas)
      : replicas_(std::move(replicas)) {}

  Replica* Pick() const;

  const std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace bouquet::ivy
