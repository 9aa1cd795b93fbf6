// What only a replica behind a network can do: come, go, lie and come back. replica_test.cc has
// what both kinds promise.
#include "ivy/dispatch/grpc_replica.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "testing/eventually.h"
#include "testing/fake_step_engine.h"
#include "testing/run_coroutine.h"
#include "testing/test_data.h"
#include "tulip/core.h"
#include "tulip/server.h"

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;
using testing::Eventually;
using testing::FakeRow;
using testing::FakeStepEngine;
using ::testing::HasSubstr;
using testing::RunCoroutine;

Chunk OneSequence(int32_t id) {
  Chunk chunk;
  chunk.sequences.push_back({.ids = {id}});
  return chunk;
}

/// A Tulip of this process that can be killed and started again at the same address.
class Tulip {
 public:
  Tulip(const std::string& address, const Clock& clock, const std::string& identity = "identity-1")
      : server_(std::move(
            tulip::Server::Start({.listen = {address}, .model_name = "fake"}, clock).value())) {
    auto engine = std::make_unique<FakeStepEngine>();
    engine_ = engine.get();
    core_ = std::move(tulip::Core::Start(std::unique_ptr<tulip::StepEngine>(std::move(engine)),
                                         {.model_name = "fake",
                                          .identity = identity,
                                          .step_tokens = 100,
                                          .max_batch_sequences = 64,
                                          .warm_up = {.budget = milliseconds(0)}},
                                         metrics_, clock)
                          .value());
  }
  ~Tulip() {
    if (server_ != nullptr) {
      Kill();
    }
  }

  void Serve() { server_->SetReady(*core_); }
  /// The connection ends while the engine may still be busy.
  void Kill() {
    engine_->Release();
    server_.reset();
  }
  int port() const { return server_->ports().front(); }
  FakeStepEngine& engine() { return *engine_; }
  tulip::Core& core() { return *core_; }
  tulip::Server& server() { return *server_; }

 private:
  Metrics metrics_;
  FakeStepEngine* engine_ = nullptr;
  std::unique_ptr<tulip::Core> core_;
  std::unique_ptr<tulip::Server> server_;
};

class GrpcReplicaTest : public ::testing::Test {
 protected:
  void Connect(const std::string& address) {
    replica_ = std::make_unique<GrpcReplica>(
        GrpcReplicaOptions{.address = address,
                           .probe = {.interval = milliseconds(20),
                                     .first_retry = milliseconds(10),
                                     .longest_retry = milliseconds(50)}},
        [this](const ReplicaDescription& description) {
          return description.identity == wanted_identity_
                     ? Status()
                     : FailedPrecondition("it serves another model folder");
        },
        clock_);
  }
  static std::string AddressOf(const Tulip& tulip) {
    return "127.0.0.1:" + std::to_string(tulip.port());
  }
  /// Starts a call that stays in the engine until it is released.
  bool HoldsACall(Tulip& tulip, boost::asio::io_context& context,
                  std::optional<Result<ChunkRows>>& rows) {
    tulip.engine().Hold();
    testing::StartCoroutine(context, replica_->Submit(OneSequence(1)), rows);
    context.poll();
    return Eventually([&] { return tulip.core().Load().under_way_tokens > 0; });
  }
  bool BecomesReady() {
    return Eventually([&] { return replica_->Load().ready; });
  }
  bool BecomesUnready(std::string_view reason) {
    return Eventually([&] {
      const ReplicaLoad load = replica_->Load();
      return !load.ready && load.reason_unready.find(reason) != std::string::npos;
    });
  }

  SystemClock clock_;
  std::string wanted_identity_ = "identity-1";
  std::unique_ptr<GrpcReplica> replica_;
};

TEST_F(GrpcReplicaTest, WaitsForAServerThatIsNotThereYet) {
  Connect("127.0.0.1:1");
  EXPECT_FALSE(replica_->Describe().has_value());
  EXPECT_TRUE(BecomesUnready("127.0.0.1:1"));
  EXPECT_EQ(RunCoroutine(replica_->Submit(OneSequence(1))).code(), StatusCode::kUnavailable);
}

TEST_F(GrpcReplicaTest, IsReadyWhenTheModelHasBeenLoaded) {
  Tulip tulip("127.0.0.1:0", clock_);
  Connect(AddressOf(tulip));
  EXPECT_TRUE(BecomesUnready("loading"));
  const auto early = RunCoroutine(replica_->Submit(OneSequence(1)));
  EXPECT_EQ(early.code(), StatusCode::kUnavailable);
  EXPECT_THAT(early.status().message(), HasSubstr("loading"));
  tulip.Serve();
  ASSERT_TRUE(BecomesReady());
  auto rows = RunCoroutine(replica_->Submit(OneSequence(1)));
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->values, FakeRow(std::vector{1}, 8));
}

TEST_F(GrpcReplicaTest, GivesNoWorkToAReplicaThatIsRefused) {
  Tulip tulip("127.0.0.1:0", clock_, "identity-2");
  tulip.Serve();
  Connect(AddressOf(tulip));
  EXPECT_TRUE(BecomesUnready("another model folder"));
}

TEST_F(GrpcReplicaTest, ServesOverAUnixSocket) {
  const testing::TemporaryFolder folder;
  const std::string address = "unix:" + (folder.path() / "tulip.sock").string();
  Tulip tulip(address, clock_);
  tulip.Serve();
  Connect(address);
  ASSERT_TRUE(BecomesReady());
  EXPECT_TRUE(RunCoroutine(replica_->Submit(OneSequence(1))).ok());
}

TEST_F(GrpcReplicaTest, EndsWhatIsUnderWayOnAReplicaThatIsLostAndFindsItAgain) {
  auto tulip = std::make_unique<Tulip>("127.0.0.1:0", clock_);
  tulip->Serve();
  const std::string address = AddressOf(*tulip);
  Connect(address);
  ASSERT_TRUE(BecomesReady());
  boost::asio::io_context& context = testing::LastingContext();
  std::optional<Result<ChunkRows>> rows;
  ASSERT_TRUE(HoldsACall(*tulip, context, rows));
  EXPECT_EQ(replica_->Load().queued_tokens, 1);
  tulip->Kill();
  tulip.reset();
  context.restart();
  context.run();
  ASSERT_TRUE(rows.has_value());
  // Either the connection broke or the core's last word came through.
  if (rows->ok()) {
    EXPECT_EQ((*rows)->values, FakeRow(std::vector{1}, 8));
  } else {
    EXPECT_EQ(rows->code(), StatusCode::kUnavailable) << rows->status().ToString();
  }
  EXPECT_TRUE(BecomesUnready(address));
  EXPECT_EQ(replica_->Load().queued_tokens, 0);

  Tulip again(address, clock_);
  again.Serve();
  ASSERT_TRUE(BecomesReady());
  EXPECT_TRUE(RunCoroutine(replica_->Submit(OneSequence(2))).ok());
}

TEST_F(GrpcReplicaTest, GivesNoWorkToAnotherModelAtTheSameAddress) {
  auto tulip = std::make_unique<Tulip>("127.0.0.1:0", clock_);
  tulip->Serve();
  const std::string address = AddressOf(*tulip);
  Connect(address);
  ASSERT_TRUE(BecomesReady());
  tulip.reset();
  Tulip other(address, clock_, "identity-2");
  other.Serve();
  EXPECT_TRUE(BecomesUnready("another model folder"));
}

TEST_F(GrpcReplicaTest, FinishesWhatIsUnderWayWhenTheServerDrains) {
  Tulip tulip("127.0.0.1:0", clock_);
  tulip.Serve();
  Connect(AddressOf(tulip));
  ASSERT_TRUE(BecomesReady());
  boost::asio::io_context& context = testing::LastingContext();
  std::optional<Result<ChunkRows>> rows;
  ASSERT_TRUE(HoldsACall(tulip, context, rows));
  std::thread drain([&] { tulip.server().Drain(milliseconds(20'000)); });
  EXPECT_TRUE(BecomesUnready("stopping"));
  EXPECT_EQ(RunCoroutine(replica_->Submit(OneSequence(2))).code(), StatusCode::kUnavailable);
  tulip.engine().Release();
  drain.join();
  context.restart();
  context.run();
  ASSERT_TRUE(rows->ok()) << rows->status().ToString();
}

TEST_F(GrpcReplicaTest, LeavesInPeaceWithCallsUnderWay) {
  Tulip tulip("127.0.0.1:0", clock_);
  tulip.Serve();
  Connect(AddressOf(tulip));
  ASSERT_TRUE(BecomesReady());
  tulip.engine().Hold();
  boost::asio::io_context& context = testing::LastingContext();
  std::vector<std::optional<Result<ChunkRows>>> results(20);
  for (auto& result : results) {
    Chunk chunk = OneSequence(1);
    chunk.deadline = Deadline::After(clock_.Now(), milliseconds(1));
    testing::StartCoroutine(context, replica_->Submit(std::move(chunk)), result);
  }
  context.run();
  replica_.reset();
  for (const auto& result : results) {
    // Whoever looks first says so: we of the chunk, or the server of its sequence.
    const Status status = result->ok() ? (*result)->statuses.front() : result->status();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  }
}

}  // namespace
}  // namespace bouquet::ivy
