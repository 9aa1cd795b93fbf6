#include "tests/simulation/machine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bouquet::simulation {
namespace {

constexpr int64_t kFirstPingTimeoutMs = 2000;

}  // namespace

Machine::Machine(std::string name, const Scenario& scenario, EventQueue& events, EventLog& log,
                 Random random)
    : name_(std::move(name)), scenario_(scenario), events_(events), log_(log), random_(random) {}

std::shared_ptr<Connection> Machine::Connect() {
  if (connection_ == nullptr && server_ != nullptr && !is_cut_off() &&
      server_->process().frozen_until() <= events_.Now()) {
    connection_ = std::make_shared<Connection>();
    connection_->number = num_connections_++;
    connection_->server = server_.get();
  }
  return connection_;
}

TimePoint Machine::ArrivalTime() {
  const TimePoint at = events_.Now() + Delay();
  return at < cut_off_until_ ? cut_off_until_ + Delay() : at;
}

void Machine::ToServer(const std::shared_ptr<Connection>& connection,
                       std::function<void(SimulatedServer&)> deliver) {
  if (connection->server == nullptr) {
    return;  // gone, and the client will learn it
  }
  events_.At(ArrivalTime(), [connection, deliver = std::move(deliver)] {
    if (connection->server == nullptr || !connection->server_open) {
      return;
    }
    // The process may be frozen, or lose the connection, before it looks.
    connection->server->process().After(std::chrono::nanoseconds(0), [connection, deliver] {
      if (connection->server_open) {
        deliver(*connection->server);
      }
    });
  });
}

void Machine::ToClient(const std::shared_ptr<Connection>& connection,
                       std::function<void()> deliver) {
  if (!connection->server_open) {
    return;
  }
  events_.At(ArrivalTime(), [connection, deliver = std::move(deliver)] {
    if (connection->client_open) {
      deliver();
    }
  });
}

void Machine::CloseClientEnd(const std::shared_ptr<Connection>& connection,
                             const std::string& reason) {
  if (!connection->client_open) {
    return;
  }
  connection->client_open = false;
  if (connection_ == connection) {
    connection_ = nullptr;
  }
  log_.Add("{}: the gateway loses connection {}: {}", name_, connection->number, reason);
  on_closed_(*connection, reason);
}

void Machine::CloseServerEnd(const std::shared_ptr<Connection>& connection) {
  if (connection->server != nullptr && connection->server_open) {
    connection->server_open = false;
    connection->server->LoseConnection(connection->number);
  }
}

void Machine::Start(const ServedModel& model, std::chrono::microseconds loading) {
  CHECK(server_ == nullptr);
  const std::string name = fmt::format("{}.{}", name_, num_processes_++);
  log_.Add("{} starts: {}, {}, inputs of {} tokens", name, model.identity, model.fingerprint,
           model.max_input_tokens);
  server_ = std::make_unique<SimulatedServer>(name, model, scenario_, events_, log_, random_.Fork(),
                                              loading, [this] { ExpectItBack(); });
}

void Machine::ExpectItBack() {
  if (server_ != nullptr && server_->serves() && !server_->has_stalled()) {
    on_fault_over_(std::max({events_.Now(), cut_off_until_, server_->process().frozen_until()}));
  }
}

void Machine::StallNextStep(std::chrono::milliseconds stall) {
  if (server_ != nullptr) {
    ++num_faults_;
    log_.Add("{}: the next step takes {} ms longer", server_->name(), stall.count());
    server_->StallNextStep(stall);
  }
}

void Machine::EndProcess() {
  if (connection_ != nullptr) {
    half_closed_.push_back(connection_);
  }
  for (const std::shared_ptr<Connection>& connection : half_closed_) {
    connection->server = nullptr;
  }
  half_closed_.clear();
  server_ = nullptr;
}

void Machine::Crash(bool quietly) {
  if (server_ == nullptr) {
    return;
  }
  log_.Add("{} crashes{}", server_->name(), quietly ? " quietly" : "");
  ++num_faults_;
  const std::shared_ptr<Connection> connection = connection_;
  EndProcess();
  if (connection != nullptr) {
    const auto notice =
        quietly ? std::chrono::milliseconds(random_.Between(1, kLastPingTimeout.count())) : Delay();
    events_.After(notice, [this, connection] { CloseClientEnd(connection, "connection reset"); });
  }
}

void Machine::Drain(std::chrono::milliseconds timeout) {
  if (server_ == nullptr) {
    return;
  }
  ++num_faults_;
  server_->Drain(timeout, [this, server = server_.get()] {
    // Rows that are on their way still arrive: the end closes what it sent in order.
    const std::shared_ptr<Connection> connection = connection_;
    CHECK(server == server_.get());
    EndProcess();
    if (connection != nullptr) {
      events_.After(std::chrono::milliseconds(100),
                    [this, connection] { CloseClientEnd(connection, "the server went away"); });
    }
  });
}

void Machine::Reset() {
  if (connection_ == nullptr) {
    return;
  }
  ++num_faults_;
  log_.Add("{}: connection {} breaks", name_, connection_->number);
  const std::shared_ptr<Connection> connection = connection_;
  half_closed_.push_back(connection);
  events_.After(Delay(), [this, connection] { CloseClientEnd(connection, "connection reset"); });
  events_.After(Delay(), [this, connection] { CloseServerEnd(connection); });
  ExpectItBack();
}

void Machine::CutOff(std::chrono::milliseconds duration) {
  ++num_faults_;
  log_.Add("{} is cut off for {} ms", name_, duration.count());
  cut_off_until_ = std::max(cut_off_until_, events_.Now() + duration);
  CloseUnlessBackBy(cut_off_until_);
  ExpectItBack();
}

void Machine::Freeze(std::chrono::milliseconds duration) {
  if (server_ == nullptr) {
    return;
  }
  ++num_faults_;
  log_.Add("{} is frozen for {} ms", server_->name(), duration.count());
  const TimePoint until = events_.Now() + duration;
  server_->process().FreezeUntil(until);
  CloseUnlessBackBy(until);
  ExpectItBack();
}

/// The client's pings find that out, the server learns it when it can be reached again.
void Machine::CloseUnlessBackBy(TimePoint back) {
  const TimePoint ping = events_.Now() + std::chrono::milliseconds(random_.Between(
                                             kFirstPingTimeoutMs, kLastPingTimeout.count()));
  if (connection_ == nullptr || ping >= back) {
    return;
  }
  events_.At(ping, [this, connection = connection_, back] {
    if (connection->client_open) {
      half_closed_.push_back(connection);
      CloseClientEnd(connection, "ping timeout");
      events_.At(back + Delay(), [this, connection] { CloseServerEnd(connection); });
    }
  });
}

}  // namespace bouquet::simulation
