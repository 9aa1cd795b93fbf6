#include "bench/load/load_loop.h"

#include <algorithm>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace bouquet::bench {

namespace asio = boost::asio;
using std::chrono::nanoseconds;

LoadLoop::LoadLoop(client::EmbedClient& client, const std::vector<LoadRequest>& requests,
                   LoopPlan plan)
    : client_(client),
      requests_(requests),
      plan_(std::move(plan)),
      start_(clock_.Now()),
      // Processes begin at different requests, so that they do not send the same ones in step.
      next_request_(plan_.part * requests.size() / plan_.num_parts) {
  CHECK(!requests.empty());
  CHECK_LT(size_t{0}, plan_.in_flight);
}

asio::awaitable<void> LoadLoop::Run() {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer idle(executor, asio::steady_timer::time_point::max());
  idle_ = &idle;
  start_ = clock_.Now();
  if (plan_.arrivals) {
    co_await SendOnSchedule();
  } else {
    num_workers_ = plan_.in_flight;
    for (size_t i = 0; i < plan_.in_flight; ++i) {
      asio::co_spawn(executor, WorkClosed(), asio::detached);
    }
  }
  all_due_ = true;
  while (num_workers_ > 0) {
    co_await idle.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  idle_ = nullptr;
}

void LoadLoop::Interrupt() {
  interrupted_ = true;
  tally_.complete = false;
  tally_.elapsed = std::max(tally_.elapsed, SinceStart());
}

nanoseconds LoadLoop::SinceStart() const { return clock_.Now() - start_; }

asio::awaitable<void> LoadLoop::WorkClosed() {
  while (!interrupted_ && SinceStart() < plan_.duration &&
         (plan_.max_requests == 0 || num_started_ < plan_.max_requests)) {
    co_await SendOne(SinceStart(), /*open=*/false);
  }
  WorkerEnds();
}

asio::awaitable<void> LoadLoop::SendOnSchedule() {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  Arrivals arrivals(*plan_.arrivals, plan_.part, plan_.num_parts);
  for (std::optional<nanoseconds> at = arrivals.Next(); at && !interrupted_; at = arrivals.Next()) {
    if (start_ + *at > clock_.Now()) {
      timer.expires_at(start_ + *at);
      co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    } else {
      co_await asio::post(asio::use_awaitable);  // late: but answers are read in between
    }
    Due(executor, *at);
  }
}

void LoadLoop::Due(const asio::any_io_executor& executor, nanoseconds intended) {
  if (num_workers_ < plan_.in_flight) {
    ++num_workers_;
    asio::co_spawn(executor, WorkOpen(intended), asio::detached);
  } else if (backlog_.size() < kMaxBacklog) {
    backlog_.push_back(intended);
  } else {
    tally_.RecordUnsent();
  }
}

asio::awaitable<void> LoadLoop::WorkOpen(nanoseconds intended) {
  for (;;) {
    co_await SendOne(intended, /*open=*/true);
    if (backlog_.empty() || interrupted_) {
      break;
    }
    intended = backlog_.front();
    backlog_.pop_front();
  }
  WorkerEnds();
}

void LoadLoop::WorkerEnds() {
  --num_workers_;
  if (num_workers_ == 0 && all_due_ && idle_ != nullptr) {
    idle_->cancel();
  }
}

asio::awaitable<void> LoadLoop::SendOne(nanoseconds intended, bool open) {
  const LoadRequest& request = requests_[next_request_++ % requests_.size()];
  ++num_started_;
  Sample sample;
  sample.intended = intended;
  sample.lag = SinceStart() - intended;
  const client::EmbedReply reply = co_await client_.Embed(request.prepared);
  const nanoseconds received = reply.received - start_;
  sample.latency = received - intended;
  sample.outcome = client::OutcomeName(reply);
  sample.has_retry_after = reply.has_retry_after;
  sample.reconnected = reply.reconnected;
  sample.num_inputs = static_cast<int64_t>(request.prepared.num_inputs);
  sample.num_tokens = request.num_tokens > 0 ? request.num_tokens : reply.rows.total_tokens;
  if (!reply.status.ok() && tally_.first_error.empty()) {
    tally_.first_error = reply.status.message();
  }
  tally_.elapsed = std::max(tally_.elapsed, received);
  tally_.Record(sample, open);
}

}  // namespace bouquet::bench
