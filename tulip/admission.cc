#include "tulip/admission.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace bouquet::tulip {

int64_t QueueState::limit_tokens() const {
  return static_cast<int64_t>(tokens_per_second * static_cast<double>(max_queue.count()) / 1000);
}

double QueueState::queued_ms() const {
  return tokens_per_second <= 0 ? 0 : static_cast<double>(queued_tokens) * 1000 / tokens_per_second;
}

int32_t QueueState::retry_after_seconds() const {
  constexpr double kLongest = 3600;
  return static_cast<int32_t>(std::clamp(std::ceil(queued_ms() / 1000), 1.0, kLongest));
}

Status CheckRoom(const QueueState& queue, int64_t arriving_tokens) {
  if (queue.queued_tokens == 0 || queue.queued_tokens + arriving_tokens <= queue.limit_tokens()) {
    return {};
  }
  return ResourceExhausted(fmt::format("the queue is full: {} tokens wait, {:.0f} ms of work, and "
                                       "{} more would pass the limit of {} ms (--max-queue-ms)",
                                       queue.queued_tokens, queue.queued_ms(), arriving_tokens,
                                       queue.max_queue.count()))
      .WithRetryAfter(queue.retry_after_seconds());
}

Admission::Admission(std::chrono::milliseconds max_queue, double tokens_per_second) {
  queue_.max_queue = max_queue;
  queue_.tokens_per_second = tokens_per_second;
}

Status Admission::Admit(std::vector<Sequence>& sequences, int64_t num_tokens, TimePoint now) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      return Unavailable("the server is stopping").WithRetryAfter(1);
    }
    RETURN_IF_ERROR(CheckRoom(queue_, num_tokens));
    queue_.queued_tokens += num_tokens;
    for (Sequence& sequence : sequences) {
      sequence.arrival = now;
      arrivals_.push_back(std::move(sequence));
    }
  }
  changed_.notify_one();
  sequences.clear();
  return {};
}

void Admission::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

void Admission::Abandon() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    abandoned_ = true;
  }
  changed_.notify_one();
}

void Admission::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void Admission::WaitForArrivals() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !arrivals_.empty() || closed_ || woken_; });
  // Nowhere else: the loop looks at what has ended after a wait, so a Wake that comes before it
  // waits again must not be forgotten.
  woken_ = false;
}

void Admission::MoveArrivalsTo(Scheduler& scheduler) {
  {
    const std::lock_guard lock(mutex_);
    std::swap(arrivals_, moving_);
  }
  for (Sequence& sequence : moving_) {
    scheduler.Add(std::move(sequence));
  }
  moving_.clear();
}

void Admission::LeaveQueue(int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  queue_.queued_tokens -= num_tokens;
}

void Admission::SetTokensPerSecond(double tokens_per_second) {
  const std::lock_guard lock(mutex_);
  queue_.tokens_per_second = tokens_per_second;
}

bool Admission::exhausted() const {
  const std::lock_guard lock(mutex_);
  return closed_ && arrivals_.empty();
}

bool Admission::abandoned() const {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

bool Admission::accepting() const {
  const std::lock_guard lock(mutex_);
  return !closed_;
}

QueueState Admission::state() const {
  const std::lock_guard lock(mutex_);
  return queue_;
}

}  // namespace bouquet::tulip
