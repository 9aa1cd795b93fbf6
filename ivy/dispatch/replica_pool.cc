#include "ivy/dispatch/replica_pool.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"

namespace bouquet::ivy {

std::optional<size_t> LeastQueued(std::span<const ReplicaLoad> loads,
                                  std::optional<size_t> except) {
  std::optional<size_t> best;
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i].ready && except != i &&
        (!best || loads[i].queued_tokens < loads[*best].queued_tokens)) {
      best = i;
    }
  }
  return best;
}

bool IsWorthAnotherReplica(const Result<ChunkRows>& rows) {
  const auto elsewhere = [](const Status& status) {
    return status.code() == StatusCode::kUnavailable ||
           status.code() == StatusCode::kResourceExhausted;
  };
  return rows.ok() ? std::ranges::any_of(rows->statuses, elsewhere) : elsewhere(rows.status());
}

ReplicaPool::ReplicaPool(std::string identity, const std::string& model_name, Metrics& metrics)
    : identity_(std::move(identity)),
      sent_again_(metrics.AddCounter("bouquet_chunks_sent_again_total",
                                     "Chunks sent to a second replica because the first was lost, "
                                     "was stopping or was full.",
                                     {{"model", model_name}})) {}

Result<std::unique_ptr<ReplicaPool>> ReplicaPool::Create(
    std::vector<std::unique_ptr<Replica>> replicas, const std::string& model_name,
    Metrics& metrics) {
  if (replicas.empty()) {
    return FailedPrecondition("a pool needs at least one replica");
  }
  auto pool = std::make_unique<ReplicaPool>("", model_name, metrics);
  for (std::unique_ptr<Replica>& replica : replicas) {
    const std::optional<ReplicaDescription> description = replica->Describe();
    CHECK(description.has_value());
    RETURN_IF_ERROR(pool->Admit(*description));
    pool->Add(std::move(replica));
  }
  return pool;
}

Status ReplicaPool::Admit(const ReplicaDescription& replica) {
  const std::lock_guard lock(mutex_);
  const std::string& identity = model_ ? model_->identity : identity_;
  if (!identity.empty() && replica.identity != identity) {
    return FailedPrecondition(fmt::format(
        "it serves another model folder: identity {}, expected {}", replica.identity, identity));
  }
  if (!model_) {
    model_ = replica;
    admitted_.notify_all();
    return {};
  }
  if (replica.max_input_tokens < model_->max_input_tokens) {
    return FailedPrecondition(fmt::format("it admits shorter inputs: {} tokens, expected {}",
                                          replica.max_input_tokens, model_->max_input_tokens));
  }
  if (replica.numerics_fingerprint != model_->numerics_fingerprint) {
    LogWarning(
        "a replica of {} computes with other numerics ({} instead of {}): vectors may differ "
        "in their last bits",
        replica.model_name, replica.numerics_fingerprint, model_->numerics_fingerprint);
  }
  return {};
}

bool ReplicaPool::WaitForModel(const std::stop_token& stop) const {
  std::unique_lock lock(mutex_);
  return admitted_.wait(lock, stop, [this] { return model_.has_value(); });
}

const ReplicaDescription& ReplicaPool::Describe() const {
  const std::lock_guard lock(mutex_);
  CHECK(model_.has_value());
  return *model_;
}

boost::asio::awaitable<Result<ChunkRows>> ReplicaPool::Submit(Chunk chunk) {
  if (replicas_.size() == 1) {
    co_return co_await replicas_.front()->Submit(std::move(chunk));  // says itself what is wrong
  }
  const std::optional<size_t> first = Pick(std::nullopt);
  if (!first) {
    co_return Unavailable("no replica is ready: " + Load().reason_unready).WithRetryAfter(1);
  }
  Result<ChunkRows> rows = co_await replicas_[*first]->Submit(chunk);
  if (!IsWorthAnotherReplica(rows) || chunk.cancelled.stop_requested()) {
    co_return rows;
  }
  const std::optional<size_t> second = Pick(first);
  if (!second) {
    co_return rows;
  }
  sent_again_.Increment();
  co_return co_await replicas_[*second]->Submit(std::move(chunk));
}

size_t ReplicaPool::num_ready() const {
  return static_cast<size_t>(
      std::ranges::count_if(replicas_, [](const auto& replica) { return replica->Load().ready; }));
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

std::optional<size_t> ReplicaPool::Pick(std::optional<size_t> except) const {
  std::vector<ReplicaLoad> loads;
  loads.reserve(replicas_.size());
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    loads.push_back(replica->Load());
  }
  return LeastQueued(loads, except);
}

}  // namespace bouquet::ivy
