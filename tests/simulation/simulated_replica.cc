#include "tests/simulation/simulated_replica.h"

#include <algorithm>
#include <stop_token>
#include <utility>
#include <vector>

#include "ivy/dispatch/resumption.h"
#include "tests/simulation/input_marks.h"

namespace bouquet::simulation {

/// One Encode under way.
struct SimulatedReplica::Call final : public ivy::Resumption {
  int32_t number = 0;
  int64_t num_tokens = 0;
  bool within_limits = false;
  std::string identity;  // of the model that it is meant for
  std::shared_ptr<Connection> connection;
  std::optional<Result<ivy::ChunkRows>> rows;  // once it has ended
  bool from_replica = false;
};

SimulatedReplica::SimulatedReplica(size_t index, Machine& machine, const Scenario& scenario,
                                   EventQueue& events, const ivy::Timers& timers, EventLog& log,
                                   GatewayChecker& checker, Random random, int32_t& num_calls,
                                   Admit admit)
    : index_(index),
      machine_(machine),
      scenario_(scenario),
      events_(events),
      timers_(timers),
      log_(log),
      checker_(checker),
      random_(random),
      num_calls_(num_calls),
      admit_(std::move(admit)),
      ledger_(machine.name(), ivy::ProbeSchedule::Options()) {
  machine_.SetClient([this](const Connection& connection, const std::string& reason) {
    OnClosed(connection, reason);
  });
  events_.After(Lag(), [this] { Probe(); });
}

boost::asio::awaitable<Result<ivy::ChunkRows>> SimulatedReplica::Submit(ivy::Chunk chunk) {
  auto call = std::make_shared<Call>();
  call->number = num_calls_++;
  call->identity = ledger_.identity();
  int32_t longest_input = 0;
  for (const text::TokenSequence& sequence : chunk.sequences) {
    const auto num_tokens = static_cast<int32_t>(sequence.ids.size());
    call->num_tokens += num_tokens;
    longest_input = std::max(longest_input, num_tokens);
  }
  call->within_limits = ledger_.Admits(longest_input);
  const int32_t first_input = chunk.sequences.front().ids[kInputMark];
  checker_.OnSend(index_, call->number, chunk);
  if (Status refusal = CheckMaySend(call->num_tokens); !refusal.ok()) {
    log_.Add("{} gets no call {}: {}", machine_.name(), call->number, refusal.message());
    checker_.OnSendEnd(first_input, refusal);
    co_return refusal;
  }
  const Deadline deadline = chunk.deadline;
  const std::stop_token cancelled = chunk.cancelled;
  Start(call, std::move(chunk));
  {
    const std::stop_callback on_cancel(cancelled, [this, call] { Cancel(call); });
    co_await ivy::Resumption::Wait(call, deadline, timers_);
  }
  Result<ivy::ChunkRows> rows = DeadlineExceeded("deadline passed at the replica");
  if (!call->rows) {
    Cancel(call);
  } else if (call->rows->ok()) {
    rows = std::move(*call->rows);
  } else {
    rows = ledger_.NoteError({call->rows->status(), call->from_replica, cancelled.stop_requested(),
                              call->within_limits, call->num_tokens});
    checker_.OnReadiness(index_, ledger_.Load().ready);
    ProbeAgainIfAsked();
  }
  checker_.OnSendEnd(first_input, rows);
  co_return rows;
}

/// Without asking it.
Status SimulatedReplica::CheckMaySend(int64_t num_tokens) const {
  RETURN_IF_ERROR(ledger_.CheckRoom(num_tokens));
  return ledger_.CheckAdmitted();
}

void SimulatedReplica::Start(const CallPointer& call, ivy::Chunk chunk) {
  calls_[call->number] = call;
  ledger_.NoteSent(call->num_tokens);
  std::optional<std::chrono::nanoseconds> remaining;
  if (chunk.deadline.at != TimePoint::max()) {
    remaining = chunk.deadline.at - events_.Now();
    events_.At(chunk.deadline.at + Lag(), [this, call] {
      End(call, DeadlineExceeded("Deadline Exceeded"), false, std::nullopt);
    });
  }
  call->connection = machine_.Connect();
  if (call->connection == nullptr) {
    // Refused at once, or silence.
    const auto wait = machine_.is_cut_off() ? random_.SkewedMs(1, 3000) : machine_.Delay();
    events_.After(
        wait, [this, call] { End(call, Unavailable("failed to connect"), false, std::nullopt); });
    return;
  }
  machine_.ToServer(call->connection,
                    [this, call, chunk = std::move(chunk), remaining](SimulatedServer& server) {
                      Receive(server, call, chunk, remaining);
                    });
}

/// At the server. What travels is how long the call may still take.
void SimulatedReplica::Receive(SimulatedServer& server, const CallPointer& call,
                               const ivy::Chunk& chunk,
                               std::optional<std::chrono::nanoseconds> remaining) {
  const Deadline deadline =
      remaining ? Deadline::After(events_.Now(), *remaining) : Deadline::None();
  server.Encode(call->number, call->connection->number, call->identity, chunk, deadline,
                [this, call](SimulatedServer::Answer answer) {
                  machine_.ToClient(call->connection, [this, call, answer = std::move(answer)] {
                    End(call, answer.rows, /*from_replica=*/true, answer.queued_tokens);
                  });
                });
}

/// As gRPC does: it ends here at once, and there when word of it arrives.
void SimulatedReplica::Cancel(const CallPointer& call) {
  events_.After(Lag(), [this, call] { End(call, Cancelled("CANCELLED"), false, std::nullopt); });
  if (call->connection != nullptr) {
    machine_.ToServer(call->connection,
                      [number = call->number](SimulatedServer& server) { server.Cancel(number); });
  }
}

void SimulatedReplica::End(const CallPointer& call, Result<ivy::ChunkRows> rows, bool from_replica,
                           std::optional<int64_t> queued_tokens) {
  if (call->rows) {
    return;
  }
  log_.Add("{} call {} ends: {}", machine_.name(), call->number,
           rows.ok() ? "rows" : rows.status().message());
  call->rows = std::move(rows);
  call->from_replica = from_replica;
  ledger_.NoteEnded(call->num_tokens, queued_tokens);
  calls_.erase(call->number);
  call->Resume();
}

void SimulatedReplica::OnClosed(const Connection& connection, const std::string& reason) {
  std::vector<CallPointer> lost;
  for (const auto& [number, call] : calls_) {
    if (call->connection.get() == &connection) {
      lost.push_back(call);
    }
  }
  for (const CallPointer& call : lost) {
    End(call, Unavailable(reason), false, std::nullopt);
  }
  if (probing_ && probe_connection_.get() == &connection) {
    OnProbeAnswer(probe_number_, {.reason = reason, .description = {}});
  }
}

void SimulatedReplica::Probe() {
  probing_ = true;
  ledger_.BeginProbe();
  const int64_t probe = ++probe_number_;
  const auto lost = [this, probe](const char* reason) {
    OnProbeAnswer(probe, {.reason = reason, .description = {}});
  };
  events_.After(kProbeTimeout, [lost] { lost("Deadline Exceeded"); });
  const std::shared_ptr<Connection> connection = machine_.Connect();
  probe_connection_ = connection;
  if (connection == nullptr) {
    if (!machine_.is_cut_off()) {
      events_.After(machine_.Delay(), [lost] { lost("failed to connect"); });
    }
    return;
  }
  machine_.ToServer(connection, [this, probe, connection](SimulatedServer& server) {
    server.Describe([this, probe, connection](ivy::ReplicaLedger::ProbeAnswer answer) {
      machine_.ToClient(
          connection, [this, probe, answer = std::move(answer)] { OnProbeAnswer(probe, answer); });
    });
  });
}

void SimulatedReplica::OnProbeAnswer(int64_t probe, ivy::ReplicaLedger::ProbeAnswer answer) {
  if (!probing_ || probe != probe_number_) {
    return;
  }
  probing_ = false;
  using State = ivy::ReplicaLedger::ProbeAnswer::State;
  std::optional<Status> verdict;
  if (answer.state == State::kServing && ledger_.IsNew(answer.description)) {
    verdict = admit_(answer.description);
  }
  if (answer.state == State::kStalled || answer.state == State::kLost) {
    ExpectCallsToEnd();
  }
  const bool was_ready = ledger_.Load().ready;
  if (ledger_.NoteProbe(std::move(answer), std::move(verdict))) {
    std::vector<CallPointer> lost;
    for (const auto& [number, call] : calls_) {
      lost.push_back(call);
    }
    for (const CallPointer& call : lost) {
      Cancel(call);
    }
  }
  const ivy::ReplicaLoad load = ledger_.Load();
  checker_.OnReadiness(index_, load.ready);
  if (load.ready != was_ready) {
    log_.Add("{} is {}", machine_.name(), load.ready ? "ready" : load.reason_unready);
  }
  const auto wait = ledger_.UntilNextProbe(random_.Unit());
  if (ledger_.probe_now()) {
    ProbeAgainIfAsked();
  } else {
    events_.After(wait, [this, probe] {
      if (!probing_ && probe == probe_number_) {
        Probe();
      }
    });
  }
}

/// What it has will not be answered, so nobody may go on waiting for it.
void SimulatedReplica::ExpectCallsToEnd() {
  constexpr std::chrono::microseconds kAfterThat(1);
  events_.After(scenario_.longest_lag + kAfterThat, [this, first_later_call = num_calls_] {
    log_.Expect(calls_.empty() || calls_.begin()->first >= first_later_call,
                "{}: call {} is under way at a replica that was given up", machine_.name(),
                calls_.empty() ? 0 : calls_.begin()->first);
  });
}

void SimulatedReplica::ProbeAgainIfAsked() {
  if (ledger_.probe_now() && !probing_) {
    events_.After(Lag(), [this, probe = probe_number_] {
      if (!probing_ && probe == probe_number_) {
        Probe();
      }
    });
  }
}

}  // namespace bouquet::simulation
