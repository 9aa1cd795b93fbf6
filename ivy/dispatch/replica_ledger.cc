#include "ivy/dispatch/replica_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace bouquet::ivy {

ReplicaLedger::ReplicaLedger(std::string name, const ProbeSchedule::Options& probe)
    : name_(std::move(name)), schedule_(probe) {
  load_.reason_unready = fmt::format("{} has not been reached yet", name_);
}

ReplicaLoad ReplicaLedger::Load() const {
  ReplicaLoad load = load_;
  load.queued_tokens += own_tokens_;
  return load;
}

Status ReplicaLedger::CheckRoom(int64_t num_tokens) const {
  if (!load_.ready || own_tokens_ == 0 || description_->max_queue_ms <= 0 ||
      load_.tokens_per_second <= 0) {
    return {};
  }
  const auto ms_of = [&](int64_t tokens) {
    return static_cast<double>(tokens) * 1000 / load_.tokens_per_second;
  };
  // A step's worth is computed and waits no more.
  const int64_t waiting = std::max<int64_t>(0, own_tokens_ - description_->step_tokens);
  if (ms_of(waiting + num_tokens) <= static_cast<double>(description_->max_queue_ms)) {
    return {};
  }
  constexpr double kLongestRetry = 3600;
  return ResourceExhausted(fmt::format("the queue is full: {} tokens wait, {:.0f} ms of work, and "
                                       "{} more would pass the limit of {} ms (--max-queue-ms)",
                                       waiting, ms_of(waiting), num_tokens,
                                       description_->max_queue_ms))
      .WithRetryAfter(
          static_cast<int32_t>(std::clamp(std::ceil(ms_of(waiting) / 1000), 1.0, kLongestRetry)));
}

void ReplicaLedger::NoteEnded(int64_t num_tokens, std::optional<int64_t> queued_tokens) {
  own_tokens_ -= num_tokens;
  if (queued_tokens) {
    NoteQueue(*queued_tokens);
  }
}

/// What is in the replica's queue besides our own work is the work of others.
void ReplicaLedger::NoteQueue(int64_t reported_tokens) {
  load_.queued_tokens = std::max<int64_t>(0, reported_tokens - own_tokens_);
}

Status ReplicaLedger::NoteError(CallError error) {
  if (error.cancelled) {
    return Cancelled("cancelled at the replica");
  }
  if (WasReplaced(error)) {
    StopSending(error.status.message());
    return Unavailable(fmt::format("replica {} was replaced: {}", name_, error.status.message()))
        .WithRetryAfter(1);
  }
  if (error.from_replica) {
    if (error.status.code() == StatusCode::kUnavailable) {
      StopSending(error.status.message());  // it stops, or loads: the next probe says more
    }
    return std::move(error.status);
  }
  switch (error.status.code()) {
    case StatusCode::kDeadlineExceeded: return DeadlineExceeded("deadline passed at the replica");
    case StatusCode::kUnavailable:
    case StatusCode::kCancelled:  // by us when it was lost, or by a server that went away
      StopSending(error.status.message());
      return Unavailable(fmt::format("replica {} was lost: {}", name_, error.status.message()))
          .WithRetryAfter(1);
    default:
      return Internal(
          fmt::format("replica {} could not be asked: {}", name_, error.status.ToString()));
  }
}

/// It does not know the model that it said it serves, or refuses an input that it said it admits.
bool ReplicaLedger::WasReplaced(const CallError& error) {
  return error.from_replica &&
         (error.status.code() == StatusCode::kFailedPrecondition ||
          (error.status.code() == StatusCode::kOutOfRange && error.within_limits));
}

Status ReplicaLedger::CheckAdmitted() const {
  if (verdict_.ok()) {
    return {};
  }
  return Unavailable(load_.reason_unready).WithRetryAfter(1);
}

std::string_view ReplicaLedger::identity() const {
  return description_ ? std::string_view(description_->identity) : std::string_view();
}

void ReplicaLedger::StopSending(const std::string& reason) {
  if (load_.ready) {
    LogWarning("replica {} is not ready: {}", name_, reason);
  }
  load_.ready = false;
  load_.reason_unready = fmt::format("{}: {}", name_, reason);
  probe_now_ = true;
}

bool ReplicaLedger::NoteProbe(ProbeAnswer answer, std::optional<Status> verdict) {
  using State = ProbeAnswer::State;
  if (answer.state == State::kServing) {
    NoteServing(std::move(answer), std::move(verdict));
    return false;
  }
  NoteUnusable(answer.reason);
  return answer.state == State::kStalled || answer.state == State::kLost;
}

void ReplicaLedger::NoteServing(ProbeAnswer answer, std::optional<Status> verdict) {
  const bool is_new = verdict.has_value();
  if (is_new) {
    if (verdict->ok()) {
      LogInfo("replica {} serves {}: {}, {}", name_, answer.description.model_name,
              answer.description.device_description, answer.description.dtype);
    } else {
      LogError("replica {} gets no work: {}", name_, verdict->message());
    }
    description_ = std::move(answer.description);
    verdict_ = *std::move(verdict);
  } else if (!load_.ready && verdict_.ok()) {
    LogInfo("replica {} is ready again", name_);
  }
  asked_ = true;
  NoteQueue(answer.queued_tokens);
  load_.tokens_per_second = answer.tokens_per_second;
  usable_ = verdict_.ok();
  load_.ready = usable_;
  load_.reason_unready = verdict_.ok() ? "" : fmt::format("{}: {}", name_, verdict_.message());
}

void ReplicaLedger::NoteUnusable(const std::string& reason) {
  if ((load_.ready || !asked_) && !retired_) {
    LogWarning("replica {} is not ready: {}", name_, reason);
  }
  asked_ = true;
  usable_ = false;
  load_.ready = false;
  load_.reason_unready = fmt::format("{}: {}", name_, reason);
  load_.queued_tokens = 0;
}

std::chrono::milliseconds ReplicaLedger::UntilNextProbe(double jitter) {
  return usable_ ? schedule_.AfterAnswer() : schedule_.AfterFailure(jitter);
}

void ReplicaLedger::Retire() {
  retired_ = true;
  NoteUnusable("the gateway lets it go");
}

}  // namespace bouquet::ivy
