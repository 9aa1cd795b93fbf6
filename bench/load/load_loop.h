#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "bench/load/arrivals.h"
#include "bench/load/tally.h"
#include "client/embed_client.h"

namespace bouquet::bench {

/// A request ready to be sent, and how many tokens it holds (0: only the server knows).
struct LoadRequest {
  client::PreparedRequest prepared;
  int64_t num_tokens = 0;
};

/// What one process does in one round.
struct LoopPlan {
  /// Closed loop: so many requests are under way at all times. Open loop: at most so many; what is
  /// due beyond waits, and its time runs from when it was due.
  size_t in_flight = 1;
  /// Closed loop: no request starts after this…
  std::chrono::nanoseconds duration{0};
  /// …or after so many; 0: no such limit.
  int64_t max_requests = 0;
  /// Makes it an open loop.
  std::optional<ArrivalPlan> arrivals;
  size_t part = 0;  // of `num_parts` processes
  size_t num_parts = 1;
};

/// Sends requests and takes the times. Latency is counted from the moment at which a request was
/// meant to be sent, so a server that stalls is charged for all that would have come meanwhile: no
/// coordinated omission.
///
/// Thread: the executor's one thread.
class LoadLoop {
 public:
  static constexpr size_t kMaxBacklog = 1'000'000;  // due, not sent; beyond, they count as "unsent"

  /// The requests are sent in turn. All that is passed must outlive the loop. `requests` has at
  /// least one.
  LoadLoop(client::EmbedClient& client, const std::vector<LoadRequest>& requests, LoopPlan plan);

  /// Until every request is answered. The result is in tally() at any time.
  boost::asio::awaitable<void> Run();
  /// Ends it early: nothing more is sent, and Run is not waited for.
  void Interrupt();

  const Tally& tally() const { return tally_; }
  int64_t num_answered() const { return tally_.num_ok() + tally_.num_failed(); }

 private:
  boost::asio::awaitable<void> SendOnSchedule();
  boost::asio::awaitable<void> WorkClosed();
  boost::asio::awaitable<void> WorkOpen(std::chrono::nanoseconds intended);
  boost::asio::awaitable<void> SendOne(std::chrono::nanoseconds intended, bool open);
  void Due(const boost::asio::any_io_executor& executor, std::chrono::nanoseconds intended);
  void WorkerEnds();
  std::chrono::nanoseconds SinceStart() const;

  client::EmbedClient& client_;
  const std::vector<LoadRequest>& requests_;
  const LoopPlan plan_;
  const SystemClock clock_;
  Tally tally_;
  TimePoint start_;
  std::deque<std::chrono::nanoseconds> backlog_;  // when each was due
  size_t next_request_;
  int64_t num_started_ = 0;
  size_t num_workers_ = 0;
  bool all_due_ = false;
  bool interrupted_ = false;
  boost::asio::steady_timer* idle_ = nullptr;  // lives in Run; cancelled when the last worker ends
};

}  // namespace bouquet::bench
