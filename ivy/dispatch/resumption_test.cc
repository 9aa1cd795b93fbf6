#include "ivy/dispatch/resumption.h"

#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "testing/run_coroutine.h"

namespace bouquet::ivy {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

asio::awaitable<void> WaitAndNote(std::shared_ptr<Resumption> resumption, Deadline deadline,
                                  std::thread::id& resumed_on) {
  co_await Resumption::Wait(std::move(resumption), deadline);
  resumed_on = std::this_thread::get_id();
}

TEST(ResumptionTest, ResumesOnTheWaitersOwnThread) {
  asio::io_context& context = testing::LastingContext();
  auto resumption = std::make_shared<Resumption>();
  std::thread::id resumed_on;
  asio::co_spawn(context, WaitAndNote(resumption, Deadline::None(), resumed_on), asio::detached);
  std::thread other([&] { resumption->Resume(); });
  context.run();
  other.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

TEST(ResumptionTest, DoesNotWaitWhenResumedBefore) {
  asio::io_context& context = testing::LastingContext();
  auto resumption = std::make_shared<Resumption>();
  resumption->Resume();
  std::thread::id resumed_on;
  asio::co_spawn(context, WaitAndNote(resumption, Deadline::None(), resumed_on), asio::detached);
  context.run();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

TEST(ResumptionTest, EndsTheWaitAtTheDeadline) {
  asio::io_context& context = testing::LastingContext();
  auto resumption = std::make_shared<Resumption>();
  std::thread::id resumed_on;
  const Deadline deadline = Deadline::After(std::chrono::steady_clock::now(), milliseconds(5));
  asio::co_spawn(context, WaitAndNote(resumption, deadline, resumed_on), asio::detached);
  context.run();
  EXPECT_TRUE(deadline.HasPassed(std::chrono::steady_clock::now()));
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
  resumption->Resume();  // too late, and harmless
}

/// Time that only moves when told to.
class HeldTimers final : public Timers {
 public:
  void ResumeAt(TimePoint at, std::shared_ptr<Resumption> waiting,
                boost::asio::steady_timer& /*timer*/) const override {
    waits[at] = std::move(waiting);
  }
  mutable std::map<TimePoint, std::shared_ptr<Resumption>> waits;
};

TEST(ResumptionTest, WaitsForTheMomentThatItsTimersName) {
  asio::io_context& context = testing::LastingContext();
  const HeldTimers timers;
  const Deadline long_ago{TimePoint(milliseconds(1))};
  bool resumed = false;
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        co_await Resumption::Wait(std::make_shared<Resumption>(), long_ago, timers);
        resumed = true;
      },
      asio::detached);
  context.poll();
  EXPECT_FALSE(resumed);
  ASSERT_TRUE(timers.waits.contains(long_ago.at));
  timers.waits[long_ago.at]->Resume();
  context.poll();
  EXPECT_TRUE(resumed);
}

TEST(ResumptionTest, ResumesEachWaiterOnceWhateverComesFirst) {
  constexpr int kWaits = 2000;
  asio::io_context& context = testing::LastingContext();
  auto work = asio::make_work_guard(context);
  std::vector<std::shared_ptr<Resumption>> resumptions;
  std::vector<std::thread::id> resumed_on(kWaits);
  for (int i = 0; i < kWaits; ++i) {
    resumptions.push_back(std::make_shared<Resumption>());
  }
  std::vector<std::thread> resumers;
  for (int t = 0; t < 2; ++t) {
    resumers.emplace_back([&] {
      for (const auto& resumption : resumptions) {
        resumption->Resume();
      }
    });
  }
  for (size_t i = 0; i < kWaits; ++i) {
    asio::co_spawn(context, WaitAndNote(resumptions[i], Deadline::None(), resumed_on[i]),
                   asio::detached);
    context.poll();
  }
  for (std::thread& resumer : resumers) {
    resumer.join();
  }
  work.reset();
  context.run();
  for (const std::thread::id& id : resumed_on) {
    EXPECT_EQ(id, std::this_thread::get_id());
  }
}

}  // namespace
}  // namespace bouquet::ivy
