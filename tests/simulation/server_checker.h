#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "model/traffic_class.h"
#include "rose/batch.h"
#include "rose/step_result.h"
#include "tests/simulation/event_log.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/served_model.h"
#include "tulip/batcher.h"
#include "tulip/chunk_reply.h"
#include "tulip/sequence.h"

namespace bouquet::simulation {

/// Holds one Tulip to its promises, by a model of its own of what the server was given and what its
/// engine was asked: nothing lost, nothing answered or computed twice, first come first served per
/// class, budgets, nothing dead in a step, the queue within its limit, failures only for a reason.
class ServerChecker {
 public:
  ServerChecker(std::string name, const ServedModel& model, const Scenario& scenario,
                const Clock& clock, EventLog& log);

  // Calls.

  void OnCall(int32_t call, const std::vector<tulip::Sequence>& sequences);
  /// What the server said at once, and what its load was before.
  void OnSubmit(int32_t call, const Status& status, const tulip::CoreLoad& before);
  void OnCancel(int32_t call);
  void OnAbandon() { abandoned_ = true; }
  void OnAnswer(int32_t call, const std::vector<tulip::ChunkReply::Outcome>& outcomes);

  // The engine.

  void OnStep(int64_t step, const rose::Batch& batch);
  void OnStepEnd(int64_t step, bool ok, std::span<const rose::RowStatus> statuses);

  /// After the server has done something.
  void CheckLoad(const tulip::CoreLoad& load);
  /// Once it drained, or nothing is asked of it any more.
  void CheckEverythingIsAnswered();

  const std::string& name() const { return name_; }
  const ServedModel& model() const { return model_; }

 private:
  enum class State : uint8_t { kWaiting, kInStep, kStepFailed, kComputed, kAnswered };

  struct Input {
    int32_t call = 0;
    int64_t arrival = 0;  // its place among all that have arrived
    int32_t num_tokens = 0;
    int32_t kind = 0;
    model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
    Deadline deadline;
    State state = State::kWaiting;
    bool failed_alone = false;
    bool given_up = false;  // it failed when so much had failed that the engine is to blame
  };
  struct Call {
    std::vector<int32_t> inputs;  // their marks, in order
    bool cancelled = false;
    bool admitted = false;
    bool answered = false;
    int64_t num_tokens = 0;
  };
  using InputKey = std::pair<int32_t, int32_t>;  // call, input

  void CheckStepInput(int64_t step, const InputKey& key, int32_t num_tokens);
  void CheckOutcome(const std::string& who, const Call& call, const Input& input,
                    const Status& status);

  const std::string name_;
  const ServedModel model_;
  const Scenario& scenario_;
  const Clock& clock_;
  EventLog& log_;

  std::map<int32_t, Call> calls_;
  std::map<InputKey, Input> inputs_;
  std::map<int64_t, std::vector<InputKey>> steps_;      // under way
  std::map<model::TrafficClass, int64_t> last_formed_;  // place of the last one put into a step
  std::map<int64_t, InputKey> waiting_;                 // by arrival; admitted, never in a step
  int64_t num_arrivals_ = 0;
  bool abandoned_ = false;
  int32_t failures_in_a_row_ = 0;
};

}  // namespace bouquet::simulation
