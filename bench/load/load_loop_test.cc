#include "bench/load/load_loop.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace bouquet::bench {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// Answers after `delay`; counts what is under way.
class FakeClient final : public client::EmbedClient {
 public:
  explicit FakeClient(std::chrono::milliseconds delay) : delay_(delay) {}

  asio::awaitable<Status> Connect(size_t /*count*/) override { co_return Status(); }

  asio::awaitable<client::EmbedReply> Embed(const client::PreparedRequest& request) override {
    sent.push_back(request.bytes);
    most_under_way = std::max(most_under_way, ++under_way_);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(delay_);
    co_await timer.async_wait(asio::use_awaitable);
    --under_way_;
    client::EmbedReply reply;
    if (fail && fail(sent.size())) {
      reply.failure = client::Failure::kStatus;
      reply.http_status = 429;
      reply.has_retry_after = true;
      reply.status = ResourceExhausted("full");
    }
    reply.rows.total_tokens = 3;
    reply.received = SystemClock().Now();
    co_return reply;
  }

  asio::awaitable<Result<std::string>> Fetch(std::string /*path*/) override {
    co_return NotFound("no page");
  }

  std::function<bool(size_t)> fail;
  std::vector<std::string> sent;
  int most_under_way = 0;

 private:
  const std::chrono::milliseconds delay_;
  int under_way_ = 0;
};

std::vector<LoadRequest> Requests(std::vector<std::string> bodies, int64_t num_tokens = 0) {
  std::vector<LoadRequest> requests;
  for (std::string& body : bodies) {
    requests.push_back({{std::move(body), 2}, num_tokens});
  }
  return requests;
}

Tally RunLoop(FakeClient& client, const std::vector<LoadRequest>& requests, LoopPlan plan) {
  asio::io_context context(1);
  LoadLoop loop(client, requests, std::move(plan));
  asio::co_spawn(context, loop.Run(),
                 [](const std::exception_ptr& error) { EXPECT_EQ(error, nullptr); });
  context.run();
  return loop.tally();
}

TEST(LoadLoopTest, ClosedLoopKeepsSoManyUnderWayAndSendsRequestsInTurn) {
  FakeClient client(1ms);
  const Tally tally = RunLoop(client, Requests({"a", "b", "c"}, 10),
                              {.in_flight = 2, .duration = 1h, .max_requests = 7});
  EXPECT_THAT(client.sent, ElementsAre("a", "b", "c", "a", "b", "c", "a"));
  EXPECT_EQ(client.most_under_way, 2);
  EXPECT_EQ(tally.num_ok(), 7);
  EXPECT_EQ(tally.num_inputs, 14);
  EXPECT_EQ(tally.num_tokens, 70);
  EXPECT_GE(tally.latency.min(), 1ms);
  EXPECT_TRUE(tally.windows.empty());
  EXPECT_TRUE(tally.complete);
}

TEST(LoadLoopTest, ClosedLoopStartsNothingAfterItsTime) {
  FakeClient client(20ms);
  const Tally tally = RunLoop(client, Requests({"a"}), {.in_flight = 1, .duration = 1ms});
  EXPECT_EQ(tally.num_ok(), 1);  // under way at the end, and waited for
  EXPECT_EQ(tally.num_tokens, 3);
  EXPECT_GE(tally.elapsed, 20ms);
}

TEST(LoadLoopTest, PartsBeginAtDifferentRequests) {
  FakeClient client(0ms);
  RunLoop(client, Requests({"a", "b", "c", "d"}),
          {.duration = 1h, .max_requests = 2, .part = 1, .num_parts = 2});
  EXPECT_THAT(client.sent, ElementsAre("c", "d"));
}

TEST(LoadLoopTest, OpenLoopCountsFromWhenARequestWasDueNotFromWhenItWasSent) {
  // Ten requests due 5 ms apart, one at a time, each takes 20 ms: the last one is sent 9 × 20 ms
  // after the first at the earliest, 9 × 5 ms after which it was due.
  FakeClient client(20ms);
  const Tally tally = RunLoop(
      client, Requests({"a"}),
      {.in_flight = 1,
       .arrivals = ArrivalPlan{.spacing = ArrivalPlan::Spacing::kEven, .phases = {{200, 50ms}}}});
  EXPECT_EQ(tally.num_ok(), 10);
  EXPECT_EQ(client.most_under_way, 1);
  EXPECT_GE(tally.latency.max(), 10 * 20ms - 9 * 5ms);
  EXPECT_GE(tally.lag.max(), 9 * 20ms - 9 * 5ms);
  EXPECT_FALSE(tally.windows.empty());
}

TEST(LoadLoopTest, OpenLoopDoesNotWaitForAnswers) {
  FakeClient client(200ms);
  const Tally tally = RunLoop(
      client, Requests({"a"}),
      {.in_flight = 100,
       .arrivals = ArrivalPlan{.spacing = ArrivalPlan::Spacing::kEven, .phases = {{1000, 20ms}}}});
  EXPECT_EQ(tally.num_ok(), 20);
  EXPECT_EQ(client.most_under_way, 20);
}

TEST(LoadLoopTest, CountsFailuresByTheirKindAndKeepsTheFirstMessage) {
  FakeClient client(0ms);
  client.fail = [](size_t number) { return number % 2 == 0; };
  const Tally tally = RunLoop(client, Requests({"a"}), {.duration = 1h, .max_requests = 10});
  EXPECT_EQ(tally.num_ok(), 5);
  EXPECT_EQ(tally.failed.at("429").count, 5);
  EXPECT_EQ(tally.failed.at("429").with_retry_after, 5);
  EXPECT_EQ(tally.first_error, "full");
}

TEST(LoadLoopTest, InterruptedItIsIncompleteAndKeepsWhatItHas) {
  FakeClient client(1ms);
  asio::io_context context(1);
  const std::vector<LoadRequest> requests = Requests({"a"});
  LoadLoop loop(client, requests, {.in_flight = 3, .duration = 1h});
  client.fail = [&](size_t number) {
    if (number == 10) {
      loop.Interrupt();
    }
    return false;
  };
  bool ended = false;
  asio::co_spawn(context, loop.Run(), [&](const std::exception_ptr&) { ended = true; });
  context.run();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(loop.tally().complete);
  EXPECT_GE(loop.tally().num_ok(), 7);
}

}  // namespace
}  // namespace bouquet::bench
