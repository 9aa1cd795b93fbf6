#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ivy/dispatch/replica.h"
#include "ivy/dispatch/replica_ledger.h"
#include "ivy/dispatch/timers.h"
#include "tests/simulation/event_log.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/gateway_checker.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"

namespace bouquet::simulation {

/// GrpcReplica with events in place of gRPC and of the probing thread; what it concludes is the
/// same ReplicaLedger's.
class SimulatedReplica final : public ivy::Replica {
 public:
  using Admit = std::function<Status(const ivy::ReplicaDescription&)>;

  /// As it probes a replica. GrpcReplicaOptions has the same defaults.
  static constexpr std::chrono::milliseconds kProbeTimeout{2000};

  /// Probes from now on. Everything given must outlive the replica.
  SimulatedReplica(size_t index, Machine& machine, const Scenario& scenario, EventQueue& events,
                   const ivy::Timers& timers, EventLog& log, GatewayChecker& checker, Random random,
                   int32_t& num_calls, Admit admit);

  std::string_view name() const override { return machine_.name(); }
  std::optional<ivy::ReplicaDescription> Describe() const override { return ledger_.description(); }
  boost::asio::awaitable<Result<ivy::ChunkRows>> Submit(ivy::Chunk chunk) override;
  ivy::ReplicaLoad Load() const override { return ledger_.Load(); }

  size_t num_calls_under_way() const { return calls_.size(); }

 private:
  struct Call;
  using CallPointer = std::shared_ptr<Call>;

  Status CheckMaySend(int64_t num_tokens) const;
  void Start(const CallPointer& call, ivy::Chunk chunk);
  void Receive(SimulatedServer& server, const CallPointer& call, const ivy::Chunk& chunk,
               std::optional<std::chrono::nanoseconds> remaining);
  void Cancel(const CallPointer& call);
  void End(const CallPointer& call, Result<ivy::ChunkRows> rows, bool from_replica,
           std::optional<int64_t> queued_tokens);
  void OnClosed(const Connection& connection, const std::string& reason);

  void Probe();
  void OnProbeAnswer(int64_t probe, ivy::ReplicaLedger::ProbeAnswer answer);
  void ExpectCallsToEnd();
  void ProbeAgainIfAsked();

  std::chrono::microseconds Lag() {
    return std::chrono::microseconds(random_.Between(0, scenario_.longest_lag.count()));
  }

  const size_t index_;
  Machine& machine_;
  const Scenario& scenario_;
  EventQueue& events_;
  const ivy::Timers& timers_;
  EventLog& log_;
  GatewayChecker& checker_;
  Random random_;
  int32_t& num_calls_;  // of all replicas: numbers are the world's
  const Admit admit_;

  ivy::ReplicaLedger ledger_;
  std::map<int32_t, CallPointer> calls_;  // under way
  int64_t probe_number_ = 0;              // of the probe under way or of the last one
  bool probing_ = false;
  std::shared_ptr<Connection> probe_connection_;
};

}  // namespace bouquet::simulation
