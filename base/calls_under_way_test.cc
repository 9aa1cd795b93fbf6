#include "base/calls_under_way.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace bouquet {
namespace {

/// Remembers the thread on which it went.
struct Call {
  explicit Call(std::thread::id& thread) : destroyed_on(thread) {}
  ~Call() { destroyed_on = std::this_thread::get_id(); }
  std::thread::id& destroyed_on;
};

TEST(CallsUnderWayTest, NeverLetsTheThreadThatEndsACallBeTheLastToHoldIt) {
  CallsUnderWay<Call> calls;
  std::thread::id first;
  std::thread::id second;
  auto call = std::make_shared<Call>(first);
  calls.Add(call);
  const Call* plain = call.get();
  call.reset();
  std::thread([&] { calls.End(plain); }).join();
  EXPECT_EQ(first, std::thread::id());  // kept
  calls.Add(std::make_shared<Call>(second));
  EXPECT_EQ(first, std::this_thread::get_id());
  const Call* other = calls.List().front().get();
  std::thread([&] { calls.End(other); }).join();
  EXPECT_EQ(second, std::thread::id());
  calls.WaitUntilNone();
  EXPECT_EQ(second, std::this_thread::get_id());
}

TEST(CallsUnderWayTest, WaitsForThoseThatHaveNotEnded) {
  CallsUnderWay<int> calls;
  const auto call = std::make_shared<int>(1);
  calls.Add(call);
  std::atomic<bool> ended = false;
  std::thread library([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
    calls.End(call.get());
  });
  calls.WaitUntilNone();
  EXPECT_TRUE(ended);
  library.join();
  EXPECT_TRUE(calls.List().empty());
  EXPECT_EQ(call.use_count(), 1);
}

}  // namespace
}  // namespace bouquet
