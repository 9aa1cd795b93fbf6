#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "tulip/scheduler.h"
#include "tulip/sequence.h"

namespace bouquet::tulip {

/// What decides whether more may wait. Pure.
struct QueueState {
  int64_t queued_tokens = 0;
  double tokens_per_second = 0;  // measured
  std::chrono::milliseconds max_queue{2000};

  int64_t limit_tokens() const;
  double queued_ms() const;
  int32_t retry_after_seconds() const;  // until what waits has been computed; at least 1
};

/// The queue may hold `max_queue` of work at the measured rate. An empty queue takes a chunk of any
/// size, so whatever is admissible is admitted one day. Error: kResourceExhausted with the numbers
/// and retry_after_seconds.
Status CheckRoom(const QueueState& queue, int64_t arriving_tokens);

/// The bounded entry from many threads to the one serving loop. Says "full" at once and never
/// waits; a chunk enters whole or not at all. Tokens count as queued from Admit until the loop says
/// that they have left the queue.
class Admission {
 public:
  Admission(std::chrono::milliseconds max_queue, double tokens_per_second);

  /// Moves `sequences` in and sets their arrival, or leaves them untouched. Thread: any. Error:
  /// kResourceExhausted when full, kUnavailable once closed.
  Status Admit(std::vector<Sequence>& sequences, int64_t num_tokens, TimePoint now);

  /// Refuses everything from now on; what was admitted stays. Thread: any.
  void Close();
  /// Asks the loop to answer what still waits instead of computing it. Thread: any.
  void Abandon();
  /// Ends a wait in WaitForArrivals. Thread: any.
  void Wake();

  // Called by the serving loop only.

  /// Waits until something has arrived, or Close, Abandon or Wake was called: look again then.
  void WaitForArrivals();
  /// Moves what has arrived into `scheduler`. Never waits.
  void MoveArrivalsTo(Scheduler& scheduler);
  void LeaveQueue(int64_t num_tokens);
  void SetTokensPerSecond(double tokens_per_second);

  /// Closed, and everything that was admitted has been moved out: nothing will follow.
  bool exhausted() const;
  bool abandoned() const;

  // Thread: any.

  bool accepting() const;
  QueueState state() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  QueueState queue_;
  std::vector<Sequence> arrivals_;
  bool closed_ = false;
  bool abandoned_ = false;
  bool woken_ = false;

  std::vector<Sequence> moving_;  // the loop's; keeps its memory
};

}  // namespace bouquet::tulip
