#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "ivy/dispatch/timers.h"

namespace bouquet::ivy {

/// Lets a coroutine wait until another thread says so, and resumes it on the coroutine's own
/// executor: code of Ivy never runs on a thread of Tulip. Held by shared_ptr, since the one who
/// waits and the one who resumes end in either order.
class Resumption {
 public:
  virtual ~Resumption() = default;

  /// Ends the wait, now or as soon as it begins. Only the first call counts. Thread: any, but hold
  /// no lock: on the waiter's own thread the coroutine goes on inside this call.
  void Resume() {
    if (state_.exchange(State::kResumed, std::memory_order_acq_rel) == State::kWaiting) {
      // A lambda, because asio 1.24 cannot dispatch an any_completion_handler as it is.
      boost::asio::dispatch(executor_,
                            [handler = std::move(handler_)]() mutable { std::move(handler)(); });
    }
  }

  /// Waits for Resume, but no longer than the deadline; `self` is this. At most once. The caller
  /// looks for itself at what has happened.
  static boost::asio::awaitable<void> Wait(std::shared_ptr<Resumption> self, Deadline deadline,
                                           const Timers& timers = kAsioTimers) {
    if (self->resumed()) {
      co_return;
    }
    self->executor_ = co_await boost::asio::this_coro::executor;
    boost::asio::steady_timer timer(self->executor_);  // ends with this frame
    if (deadline.at != TimePoint::max()) {
      timers.ResumeAt(deadline.at, self, timer);
    }
    co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
        [](auto handler, Resumption* waiting) { waiting->Suspend(std::move(handler)); },
        boost::asio::use_awaitable, self.get());
  }

 private:
  enum class State : uint8_t { kRunning, kWaiting, kResumed };

  bool resumed() const { return state_.load(std::memory_order_acquire) == State::kResumed; }

  void Suspend(boost::asio::any_completion_handler<void()> handler) {
    handler_.swap(handler);  // asio 1.24's move assignment calls itself without end
    State expected = State::kRunning;
    if (!state_.compare_exchange_strong(expected, State::kWaiting, std::memory_order_acq_rel)) {
      // Resume came first. Posted, because a coroutine may not be resumed while it suspends.
      boost::asio::post(executor_,
                        [resumed = std::move(handler_)]() mutable { std::move(resumed)(); });
    }
    // From the exchange on the coroutine may run, so `this` may be touched no more.
  }

  std::atomic<State> state_ = State::kRunning;
  boost::asio::any_completion_handler<void()> handler_;
  boost::asio::any_io_executor executor_;
};

}  // namespace bouquet::ivy
