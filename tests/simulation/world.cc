#include "tests/simulation/world.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/check.h"
#include "base/metrics.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/encode/encoder.h"
#include "ivy/encode/tokenize_stage.h"
#include "tests/simulation/clients.h"
#include "tests/simulation/event_log.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/gateway_checker.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_replica.h"

namespace bouquet::simulation {
namespace {

using std::chrono::milliseconds;

// From the end of the last fault until everything is idle: the longest stall of a step, its
// discovery and what waits behind it.
constexpr milliseconds kCalm(90'000);
constexpr milliseconds kLastRequestTime(60'000);  // the longest input on the slowest engine
// A replica that is there again is found again by then: the loss of its old connection has been
// noticed, then the longest wait for the next probe, and the way there and back.
constexpr milliseconds kBackWithin =
    std::max(Machine::kLastPingTimeout, SimulatedReplica::kProbeTimeout) +
    ivy::ProbeSchedule::Options().longest_retry + milliseconds(500);

class World {
 public:
  World(uint64_t seed, bool print);
  Outcome Run();

  const EventLog& log() const { return log_; }
  uint64_t seed() const { return seed_; }

 private:
  void AddMachine(size_t index);
  Status Admit(const ivy::ReplicaDescription& description);
  void BeginLoad();
  void ExpectBack(size_t index, TimePoint when);
  void RunUntil(TimePoint end);
  void CheckIdle();

  const uint64_t seed_;
  Random random_;
  const Scenario scenario_;
  EventQueue events_;
  const VirtualTimers timers_{events_};
  EventLog log_;
  GatewayChecker gateway_checker_{scenario_, events_, log_};
  Metrics metrics_;
  int32_t num_calls_ = 1;

  boost::asio::io_context context_{1};
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Faults>> faults_;
  std::vector<SimulatedReplica*> replicas_;  // the pool's
  ivy::ReplicaPool pool_{"ours", "simulated", metrics_};
  ivy::TokenizeStage stage_{ivy::TokenizeOptions{.num_threads = 0}, metrics_, "simulated", events_};
  std::shared_ptr<ivy::Encoder> encoder_;  // once a replica has been admitted
  std::unique_ptr<Clients> clients_;
};

World::World(uint64_t seed, bool print)
    : seed_(seed), random_(seed), scenario_(MakeScenario(random_.Fork())), log_(events_, print) {
  for (int32_t i = 0; i < scenario_.num_machines; ++i) {
    AddMachine(static_cast<size_t>(i));
  }
}

void World::AddMachine(size_t index) {
  machines_.push_back(std::make_unique<Machine>(fmt::format("tulip{}", index), scenario_, events_,
                                                log_, random_.Fork()));
  Machine& machine = *machines_.back();
  auto replica = std::make_unique<SimulatedReplica>(
      index, machine, scenario_, events_, timers_, log_, gateway_checker_, random_.Fork(),
      num_calls_, [this](const ivy::ReplicaDescription& found) { return Admit(found); });
  machine.SetObserver([this, index](TimePoint when) { ExpectBack(index, when); });
  replicas_.push_back(replica.get());
  pool_.Add(std::move(replica));
  faults_.push_back(std::make_unique<Faults>(machine, scenario_, events_, random_.Fork()));
  machine.Start({.max_input_tokens = scenario_.max_input_tokens}, random_.SkewedUs(1, 500'000));
}

Status World::Admit(const ivy::ReplicaDescription& description) {
  Status verdict = pool_.Admit(description);
  if (verdict.ok() && encoder_ == nullptr) {
    Result<std::shared_ptr<ivy::Encoder>> encoder =
        ivy::Encoder::Create({}, ivy::TextSource(), stage_, pool_, timers_);
    CHECK(encoder.ok());
    encoder_ = std::move(encoder).value();
    clients_ = std::make_unique<Clients>(scenario_, events_, gateway_checker_, context_, *encoder_,
                                         random_.Fork());
    events_.After(milliseconds(0), [this] { BeginLoad(); });  // when the probe has been noted
  }
  return verdict;
}

void World::BeginLoad() {
  clients_->Begin();
  for (const std::unique_ptr<Faults>& faults : faults_) {
    faults->Begin();
  }
  events_.After(scenario_.load_time, [this] {
    log_.Add("the load ends");
    clients_->End();
    for (const std::unique_ptr<Faults>& faults : faults_) {
      faults->End();
    }
  });
}

/// Unless something else happens to it.
void World::ExpectBack(size_t index, TimePoint when) {
  const ServedModel& model = machines_[index]->server()->model();
  if (!model.is_ours() || model.max_input_tokens < scenario_.max_input_tokens) {
    return;
  }
  events_.At(when + kBackWithin, [this, index, num_faults = machines_[index]->num_faults()] {
    if (machines_[index]->num_faults() == num_faults) {
      const ivy::ReplicaLoad load = replicas_[index]->Load();
      log_.Expect(load.ready, "replica {} is not found again: {}", index, load.reason_unready);
    }
  });
}

void World::RunUntil(TimePoint end) {
  while (log_.violations().empty() && events_.RunNext(end)) {
    context_.poll();
  }
}

void World::CheckIdle() {
  gateway_checker_.CheckEverythingIsAnswered();
  for (size_t i = 0; i < machines_.size(); ++i) {
    const ivy::ReplicaLoad load = replicas_[i]->Load();
    log_.Expect(load.ready, "replica {} is not ready at the end: {}", i, load.reason_unready);
    log_.Expect(load.queued_tokens == 0 && replicas_[i]->num_calls_under_way() == 0,
                "replica {} is said to have {} tokens queued when all are idle", i,
                load.queued_tokens);
    SimulatedServer* server = machines_[i]->server();
    log_.Expect(server != nullptr && server->serves(), "machine {} does not serve", i);
    if (server != nullptr && server->serves()) {
      server->CheckIdle();
    }
  }
}

Outcome World::Run() {
  // Everything has begun by then, whatever happened to the machines first.
  RunUntil(events_.Now() + scenario_.load_time + kCalm);
  if (log_.violations().empty()) {
    log_.Expect(clients_ != nullptr, "no replica was ever admitted");
  }
  if (log_.violations().empty()) {
    CheckIdle();
  }
  if (log_.violations().empty()) {
    std::optional<bool> answered;
    clients_->SendLast([&answered](bool ok) { answered = ok; });
    context_.poll();
    RunUntil(events_.Now() + kLastRequestTime);
    log_.Expect(answered == true || scenario_.step_failure > 0, "the last request is {}",
                answered ? "refused" : "not answered");
  }
  return {.violations = log_.violations(),
          .last_lines = {log_.last_lines().begin(), log_.last_lines().end()},
          .log_hash = log_.hash(),
          .num_lines = log_.num_lines(),
          .num_requests = gateway_checker_.num_requests(),
          .num_ok = gateway_checker_.num_ok()};
}

const World* running_world = nullptr;

/// A CHECK in the code under test: show what led to it.
void PrintRunningWorld(int signal) {
  if (const World* world = std::exchange(running_world, nullptr)) {
    for (const std::string& line : world->log().last_lines()) {
      fmt::print(stderr, "{}\n", line);
    }
    fmt::print(stderr, "seed {} aborted. Again: {}\n", world->seed(), ReplayCommand(world->seed()));
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Outcome Simulate(uint64_t seed, bool print) {
  std::signal(SIGABRT, PrintRunningWorld);
  auto world = std::make_unique<World>(seed, print);
  running_world = world.get();
  Outcome outcome = world->Run();
  running_world = nullptr;
  if (!outcome.violations.empty()) {
    // Stopped in the middle: coroutines wait in it, and hold what they wait for. Kept for good.
    static auto* stopped = new std::deque<std::unique_ptr<World>>;
    stopped->push_back(std::move(world));
  }
  return outcome;
}

std::string ReplayCommand(uint64_t seed) {
  return fmt::format("./dev simulate --seed {} --log", seed);
}

}  // namespace bouquet::simulation
