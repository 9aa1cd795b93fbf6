#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/metrics.h"
#include "ivy/dispatch/replica.h"
#include "ivy/dispatch/replica_ledger.h"
#include "tests/simulation/event_log.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/served_model.h"
#include "tests/simulation/server_checker.h"
#include "tests/simulation/simulated_engine.h"
#include "tulip/batcher.h"

namespace bouquet::simulation {

/// A process `bouquet tulip`: a real Batcher on a simulated engine, whose two threads take their
/// turns as events, and the part of tulip::InferenceService between it and the network.
class SimulatedServer {
 public:
  /// A response on its way out.
  struct Answer {
    Result<ivy::ChunkRows> rows;
    std::optional<int64_t> queued_tokens;
  };
  using AnswerFunction = std::function<void(Answer)>;

  /// Loads for `loading`, then serves and calls `on_serving`. Everything given must outlive the
  /// server.
  SimulatedServer(std::string name, const ServedModel& model, const Scenario& scenario,
                  EventQueue& events, EventLog& log, Random random,
                  std::chrono::microseconds loading, std::function<void()> on_serving);
  ~SimulatedServer();
  SimulatedServer(const SimulatedServer&) = delete;
  SimulatedServer& operator=(const SimulatedServer&) = delete;

  // What arrives from the network. `answer` is called once, unless the process ends before.

  void Encode(int32_t call, int64_t connection, const std::string& identity,
              const ivy::Chunk& chunk, Deadline deadline, AnswerFunction answer);
  void Cancel(int32_t call);
  void Describe(const std::function<void(ivy::ReplicaLedger::ProbeAnswer)>& answer);
  /// The other end of a connection is gone: its calls are cancelled.
  void LoseConnection(int64_t connection);

  // What happens to it.

  /// Takes nothing new and finishes what it has, for at most `timeout`; then calls `ended`.
  void Drain(std::chrono::milliseconds timeout, std::function<void()> ended);
  void StallNextStep(std::chrono::milliseconds stall);
  Process& process() { return process_; }

  const std::string& name() const { return checker_.name(); }
  const ServedModel& model() const { return checker_.model(); }
  bool has_stalled() const { return has_stalled_; }  // ever
  bool serves() const { return batcher_ != nullptr && !draining_; }
  /// Nothing waits, nothing is under way, everything is answered.
  void CheckIdle();

 private:
  class Reply;
  struct Call {
    int64_t connection = 0;
    std::stop_source cancelled;
    AnswerFunction answer;
    std::shared_ptr<Reply> reply;
  };

  void Load();
  void TakeLoopTurn();
  void TakeCompleterTurn();
  void PlanLoopTurn(TimePoint at);
  void LookForWork();
  void OnAnswered(int32_t call, Reply& reply);
  void EndWhenDrained();
  std::chrono::microseconds Lag() {
    return std::chrono::microseconds(random_.Between(0, scenario_.longest_lag.count()));
  }

  const Scenario& scenario_;
  EventQueue& events_;
  EventLog& log_;
  Random random_;
  ServerChecker checker_;
  const std::function<void()> on_serving_;
  std::map<int32_t, Call> calls_;  // under way

  Metrics metrics_;
  SimulatedEngine* engine_ = nullptr;        // the batcher's
  std::unique_ptr<tulip::Batcher> batcher_;  // from when it has loaded

  tulip::ServingLoop::NextTurn loop_waits_for_ = tulip::ServingLoop::NextTurn::kNow;
  TimePoint loop_turn_at_ = TimePoint::max();  // planned
  int64_t loop_turn_number_ = 0;               // a later plan replaces an earlier one
  bool draining_ = false;
  bool has_stalled_ = false;
  std::function<void()> on_drained_;

  Process process_;  // last: from its end on, nothing of the above happens
};

}  // namespace bouquet::simulation
