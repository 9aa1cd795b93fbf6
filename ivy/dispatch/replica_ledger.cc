#include "ivy/dispatch/replica_ledger.h"

#include <algorithm>
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
  return num_tokens >= full_tokens_ ? full_ : Status();
}

void ReplicaLedger::NoteEnded(int64_t num_tokens, std::optional<int64_t> queued_tokens) {
  own_tokens_ -= num_tokens;
  if (queued_tokens) {
    NoteQueue(*queued_tokens);
  }
  if (queued_tokens || own_tokens_ == 0) {
    full_ = Status();  // its queue has moved, or nothing of ours is there to tell when it does
  }
}

void ReplicaLedger::NoteFull(const Status& refusal, int64_t num_tokens) {
  if (own_tokens_ > 0) {
    full_tokens_ = full_.ok() ? num_tokens : std::min(full_tokens_, num_tokens);
    full_ = refusal;
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
    } else if (error.status.code() == StatusCode::kResourceExhausted) {
      NoteFull(error.status, error.num_tokens);
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
  full_ = Status();
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
  full_ = Status();
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
