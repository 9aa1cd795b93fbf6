#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/event_log.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_server.h"

namespace bouquet::simulation {

/// A connection from the gateway to a process. Its two ends learn at different times that it is
/// gone; until then messages to the other end are lost without a word.
struct Connection {
  int64_t number = 0;
  SimulatedServer* server = nullptr;  // null once the process has ended
  bool client_open = true;
  bool server_open = true;
};

/// An address at which a Tulip may run, and the network between it and the gateway. Processes come
/// and go here; messages are late, wait for the end of a partition, or are lost with their
/// connection. All of it is asked for by Faults, or follows from it.
class Machine {
 public:
  /// A client finds out by pings, in this time at the latest, that the other end is silent.
  static constexpr std::chrono::milliseconds kLastPingTimeout{3000};

  /// `reason` is what the client's network would say.
  using OnClosed = std::function<void(const Connection&, const std::string& reason)>;

  Machine(std::string name, const Scenario& scenario, EventQueue& events, EventLog& log,
          Random random);

  const std::string& name() const { return name_; }
  /// Null while no process runs here.
  SimulatedServer* server() { return server_.get(); }

  // The gateway's side.

  void SetClient(OnClosed on_closed) { on_closed_ = std::move(on_closed); }
  /// Told, in advance, when a fault will be over: the process serves and can be reached again. Not
  /// where a step stalls: when that one begins, and so ends, depends on the load.
  using OnFaultOver = std::function<void(TimePoint when)>;
  void SetObserver(OnFaultOver on_fault_over) { on_fault_over_ = std::move(on_fault_over); }
  /// Null when nobody listens or nothing comes through.
  std::shared_ptr<Connection> Connect();
  void ToServer(const std::shared_ptr<Connection>& connection,
                std::function<void(SimulatedServer&)> deliver);
  void ToClient(const std::shared_ptr<Connection>& connection, std::function<void()> deliver);
  std::chrono::microseconds Delay() { return random_.SkewedUs(1, scenario_.longest_delay.count()); }
  bool is_cut_off() const { return events_.Now() < cut_off_until_; }

  // What happens to it.

  /// Starts a process where none runs.
  void Start(const ServedModel& model, std::chrono::microseconds loading);
  /// The process ends at once. `quietly`: nobody tells the client.
  void Crash(bool quietly);
  void Drain(std::chrono::milliseconds timeout);
  /// The connection breaks.
  void Reset();
  /// Nothing comes through in either direction; what was sent arrives afterwards, unless the
  /// gateway has given the connection up.
  void CutOff(std::chrono::milliseconds duration);
  void Freeze(std::chrono::milliseconds duration);
  /// The next step takes that much longer.
  void StallNextStep(std::chrono::milliseconds stall);

  int64_t num_faults() const { return num_faults_; }

 private:
  void CloseClientEnd(const std::shared_ptr<Connection>& connection, const std::string& reason);
  void CloseServerEnd(const std::shared_ptr<Connection>& connection);
  void CloseUnlessBackBy(TimePoint back);
  void EndProcess();
  void ExpectItBack();
  TimePoint ArrivalTime();

  const std::string name_;
  const Scenario& scenario_;
  EventQueue& events_;
  EventLog& log_;
  Random random_;
  OnClosed on_closed_;
  OnFaultOver on_fault_over_;

  std::unique_ptr<SimulatedServer> server_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::shared_ptr<Connection>> half_closed_;  // the server does not know yet
  int64_t num_connections_ = 0;
  int32_t num_processes_ = 0;
  int64_t num_faults_ = 0;
  TimePoint cut_off_until_ = TimePoint::min();
};

}  // namespace bouquet::simulation
