#include "ivy/dispatch/replica_pool.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace bouquet::ivy {

std::optional<size_t> LeastQueued(std::span<const ReplicaLoad> loads) {
  std::optional<size_t> best;
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i].ready && (!best || loads[i].queued_tokens < loads[*best].queued_tokens)) {
      best = i;
    }
  }
  return best;
}

Result<std::unique_ptr<ReplicaPool>> ReplicaPool::Create(
    std::vector<std::unique_ptr<Replica>> replicas) {
  if (replicas.empty()) {
    return FailedPrecondition("a pool needs at least one replica");
  }
  const ReplicaDescription& first = replicas.front()->Describe();
  for (size_t i = 1; i < replicas.size(); ++i) {
    const ReplicaDescription& other = replicas[i]->Describe();
    if (other.identity != first.identity) {
      return FailedPrecondition(
          fmt::format("replica {} serves another model folder: identity {}, expected {}", i,
                      other.identity, first.identity));
    }
    if (other.max_input_tokens < first.max_input_tokens) {
      return FailedPrecondition(
          fmt::format("replica {} admits shorter inputs: {} tokens, expected "
                      "{}",
                      i, other.max_input_tokens, first.max_input_tokens));
    }
    if (other.numerics_fingerprint != first.numerics_fingerprint) {
      LogWarning(
          "replica {} computes with other numerics ({} instead of {}): vectors may differ "
          "in their last bits",
          i, other.numerics_fingerprint, first.numerics_fingerprint);
    }
  }
  return std::unique_ptr<ReplicaPool>(new ReplicaPool(std::move(replicas)));
}

boost::asio::awaitable<Result<ChunkRows>> ReplicaPool::Submit(Chunk chunk) {
  Replica* replica = Pick();
  if (replica == nullptr) {
    co_return Unavailable("no replica is ready: " + Load().reason_unready).WithRetryAfter(1);
  }
  co_return co_await replica->Submit(std::move(chunk));
}

void ReplicaPool::Cancel(const CancelFlag& flag) {
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    replica->Cancel(flag);
  }
}

ReplicaLoad ReplicaPool::Load() const {
  ReplicaLoad total;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    ReplicaLoad load = replica->Load();
    total.queued_tokens += load.queued_tokens;
    total.tokens_per_second += load.tokens_per_second;
    total.ready = total.ready || load.ready;
    if (total.reason_unready.empty()) {
      total.reason_unready = std::move(load.reason_unready);
    }
  }
  if (total.ready) {
    total.reason_unready.clear();
  }
  return total;
}

int32_t ReplicaPool::RetryAfterSeconds() const {
  constexpr double kLongest = 3600;
  const ReplicaLoad load = Load();
  if (load.tokens_per_second <= 0) {
    return 1;
  }
  const double seconds = static_cast<double>(load.queued_tokens) / load.tokens_per_second;
  return static_cast<int32_t>(std::clamp(std::ceil(seconds), 1.0, kLongest));
}

Replica* ReplicaPool::Pick() const {
  if (replicas_.size() == 1) {
    return replicas_.front().get();  // it says for itself why it is not ready
  }
  std::vector<ReplicaLoad> loads;
  loads.reserve(replicas_.size());
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    loads.push_back(replica->Load());
  }
  const std::optional<size_t> least = LeastQueued(loads);
  return least ? replicas_[*least].get() : nullptr;
}

}  // namespace bouquet::ivy
