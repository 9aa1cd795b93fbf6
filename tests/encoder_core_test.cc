// The encoder over a real tulip::Core with a fake engine: the whole path but HTTP and kernels,
// under many requests at once.
#include <atomic>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include "ivy/dispatch/in_process_replica.h"
#include "ivy/encode/encoder.h"
#include "testing/fake_step_engine.h"
#include "testing/run_coroutine.h"
#include "tulip/core.h"

namespace bouquet::ivy {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using testing::FakeRow;
using testing::FakeStepEngine;
using testing::FakeStepEngineOptions;

class EncoderCoreTest : public ::testing::Test {
 protected:
  void Start(const FakeStepEngineOptions& engine_options, milliseconds max_queue) {
    auto engine = std::make_unique<FakeStepEngine>(engine_options);
    engine_ = engine.get();
    auto core = tulip::Core::Start(std::unique_ptr<tulip::StepEngine>(std::move(engine)),
                                   {.model_name = "fake",
                                    .step_tokens = 100,
                                    .max_batch_sequences = 64,
                                    .max_queue = max_queue,
                                    .warm_up = {.budget = milliseconds(0)}},
                                   metrics_, clock_);
    ASSERT_TRUE(core.ok()) << core.status().ToString();
    core_ = std::move(core).value();
    stage_ = std::make_unique<TokenizeStage>(TokenizeOptions{.num_threads = 1}, metrics_, "fake",
                                             clock_);
    std::vector<std::unique_ptr<Replica>> replicas;
    replicas.push_back(std::make_unique<InProcessReplica>(*core_));
    pool_ = std::move(ReplicaPool::Create(std::move(replicas), "fake", metrics_).value());
    encoder_ = Encoder::Create({}, {nullptr, "a fake", false}, *stage_, *pool_).value();
  }

  static EncodeRequest RandomRequest(std::mt19937& random) {
    EncodeRequest request;
    request.inputs.resize(1 + random() % (random() % 4 == 0 ? 60 : 4));
    for (EncodeInput& input : request.inputs) {
      std::vector<int32_t> ids(1 + random() % 40);
      for (int32_t& id : ids) {
        id = static_cast<int32_t>(random() % 900);
      }
      input = std::move(ids);
    }
    request.traffic_class =
        random() % 3 == 0 ? model::TrafficClass::kBulk : model::TrafficClass::kInteractive;
    return request;
  }

  static void ExpectRows(const std::vector<EncodeInput>& inputs, const EncodedRows& rows) {
    ASSERT_EQ(rows.statuses.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_TRUE(rows.statuses[i].ok()) << rows.statuses[i].ToString();
      const auto begin = rows.values.begin() + static_cast<ptrdiff_t>(i * rows.dimensions);
      ASSERT_EQ(std::vector<float>(begin, begin + rows.dimensions),
                FakeRow(std::get<std::vector<int32_t>>(inputs[i]), rows.dimensions));
    }
  }

  SystemClock clock_;
  Metrics metrics_;
  FakeStepEngine* engine_ = nullptr;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<TokenizeStage> stage_;
  std::unique_ptr<ReplicaPool> pool_;
  std::shared_ptr<Encoder> encoder_;
};

TEST_F(EncoderCoreTest, AnswersManyRequestsFromTwoThreadsWithTheirOwnRows) {
  Start({.latency = std::chrono::microseconds(100)}, milliseconds(60'000));
  constexpr int kConnections = 12;
  constexpr int kRequestsEach = 20;
  asio::io_context& context = testing::LastingContext(2);
  std::atomic<int> answered = 0;
  const auto connection = [&](uint32_t seed) -> asio::awaitable<void> {
    std::mt19937 random(seed);
    for (int i = 0; i < kRequestsEach; ++i) {
      EncodeRequest request = RandomRequest(random);
      const std::vector<EncodeInput> inputs = request.inputs;
      auto rows = co_await encoder_->Encode(std::move(request));
      EXPECT_TRUE(rows.ok()) << rows.status().ToString();
      if (rows.ok()) {
        ExpectRows(inputs, *rows);
      }
      ++answered;
    }
  };
  for (uint32_t seed = 1; seed <= kConnections; ++seed) {
    asio::co_spawn(asio::make_strand(context), connection(seed), asio::detached);
  }
  std::thread second([&] { context.run(); });
  context.run();
  second.join();
  EXPECT_EQ(answered, kConnections * kRequestsEach);
  EXPECT_LE(engine_->largest_tokens(), 100);
}

TEST_F(EncoderCoreTest, AnswersEveryRequestWhenStoppedWhileBusy) {
  Start({.latency = std::chrono::microseconds(300)}, milliseconds(60'000));
  constexpr int kConnections = 12;
  asio::io_context& context = testing::LastingContext();
  std::atomic<int> ok = 0;
  int unavailable = 0;
  const auto connection = [&](uint32_t seed) -> asio::awaitable<void> {
    std::mt19937 random(seed);
    for (bool serving = true; serving;) {
      EncodeRequest request = RandomRequest(random);
      const std::vector<EncodeInput> inputs = request.inputs;
      auto rows = co_await encoder_->Encode(std::move(request));
      serving = rows.ok();
      if (serving) {
        ExpectRows(inputs, *rows);
        ++ok;
      } else {
        EXPECT_EQ(rows.code(), StatusCode::kUnavailable) << rows.status().ToString();
        ++unavailable;
      }
    }
  };
  for (uint32_t seed = 1; seed <= kConnections; ++seed) {
    asio::co_spawn(context, connection(seed), asio::detached);
  }
  std::thread stop([&] {
    while (ok < 50) {
      std::this_thread::yield();
    }
    core_->Stop(milliseconds(5));
  });
  context.run();  // ends only when every connection has been answered
  stop.join();
  EXPECT_EQ(unavailable, kConnections);
}

TEST_F(EncoderCoreTest, ServesOnAfterCancellationsAndDeadlinesAtEveryMoment) {
  Start({.latency = std::chrono::microseconds(200)}, milliseconds(60'000));
  constexpr int kConnections = 8;
  asio::io_context& context = testing::LastingContext();
  const auto connection = [&](uint32_t seed) -> asio::awaitable<void> {
    std::mt19937 random(seed);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int i = 0; i < 40; ++i) {
      EncodeRequest request = RandomRequest(random);
      const std::stop_source source = request.cancelled;
      const bool cancels = random() % 2 == 0;
      if (cancels) {
        timer.expires_after(std::chrono::microseconds(random() % 800));
        timer.async_wait([source](const boost::system::error_code&) { source.request_stop(); });
      } else {
        request.deadline =
            Deadline::After(clock_.Now(), std::chrono::microseconds(random() % 1500));
      }
      auto rows = co_await encoder_->Encode(std::move(request));
      timer.cancel();
      EXPECT_TRUE(rows.ok() ||
                  rows.code() == (cancels ? StatusCode::kCancelled : StatusCode::kDeadlineExceeded))
          << rows.status().ToString();
    }
  };
  for (uint32_t seed = 1; seed <= kConnections; ++seed) {
    asio::co_spawn(context, connection(seed), asio::detached);
  }
  context.run();
  std::mt19937 random(99);
  EncodeRequest request = RandomRequest(random);
  const std::vector<EncodeInput> inputs = request.inputs;
  auto rows = testing::RunCoroutine(encoder_->Encode(std::move(request)));
  ASSERT_TRUE(rows.ok());
  ExpectRows(inputs, *rows);
  core_->Stop(milliseconds(60'000));
  EXPECT_EQ(core_->Load().queued_tokens, 0);
}

}  // namespace
}  // namespace bouquet::ivy
