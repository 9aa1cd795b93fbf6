#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/dispatch/replica.h"
#include "ivy/encode/encode_request.h"
#include "tests/simulation/event_log.h"
#include "tests/simulation/scenario.h"

namespace bouquet::simulation {

/// Holds Ivy to its promises, by a model of its own of what was asked, sent and answered: one
/// answer per request, each row its input's own, in time, errors only for a reason, a chunk sent to
/// two replicas at most.
class GatewayChecker {
 public:
  /// A request whose deadline has passed is answered within this: a sender that waits for room
  /// looks that often. One that nobody wants any more, or of which a chunk has failed, takes the
  /// lag of the calls that are cancelled besides.
  static constexpr std::chrono::milliseconds kAnswerBound{10};

  GatewayChecker(const Scenario& scenario, const Clock& clock, EventLog& log)
      : scenario_(scenario), clock_(clock), log_(log) {}

  // Clients.

  void OnRequest(int32_t number, const ivy::EncodeRequest& request);
  void OnHangUp(int32_t number);
  void OnAnswer(int32_t number, const Result<ivy::EncodedRows>& answer);

  // Replicas. A chunk is known by its first input.

  void OnSend(size_t replica, int32_t call, const ivy::Chunk& chunk);
  void OnReadiness(size_t replica, bool ready);
  void OnSendEnd(int32_t first_input, const Result<ivy::ChunkRows>& rows);

  void CheckEverythingIsAnswered();
  int64_t num_requests() const { return static_cast<int64_t>(requests_.size()); }
  int64_t num_ok() const { return num_ok_; }

 private:
  struct Request {
    std::vector<std::vector<int32_t>> inputs;
    uint32_t dimensions = 0;
    Deadline deadline;
    std::optional<TimePoint> hung_up;
    std::optional<TimePoint> failed;  // a chunk came back that goes nowhere else
    bool answered = false;
    size_t chunks_under_way = 0;
    std::map<StatusCode, int32_t> send_errors;
  };
  struct Send {
    TimePoint ended;
    size_t replica = 0;
    bool under_way = true;
    Result<ivy::ChunkRows> rows = ivy::ChunkRows();
  };
  struct Chunk {
    int32_t request = 0;
    bool is_first = false;
    std::vector<Send> sends;
    int32_t sends_in_turn = 0;  // to other replicas at once, one after the other
  };

  void CheckSendAgain(const Chunk& chunk, size_t replica, const Request& request,
                      const std::string& who);
  void CheckRows(const Request& request, const ivy::EncodedRows& rows, const std::string& who);
  void CheckError(const Request& request, const Status& error, const std::string& who);

  const Scenario& scenario_;
  const Clock& clock_;
  EventLog& log_;
  std::map<int32_t, Request> requests_;
  std::map<int32_t, int32_t> request_of_input_;
  std::map<int32_t, Chunk> chunks_;
  std::set<size_t> ready_;                         // replicas
  TimePoint none_ready_until_ = TimePoint::min();  // when a time without any has ended last
  int64_t num_ok_ = 0;
};

}  // namespace bouquet::simulation
