#include "tests/simulation/server_checker.h"

#include <algorithm>

#include "tests/simulation/input_marks.h"
#include "tulip/step_retry.h"

namespace bouquet::simulation {

ServerChecker::ServerChecker(std::string name, const ServedModel& model, const Scenario& scenario,
                             const Clock& clock, EventLog& log)
    : name_(std::move(name)), model_(model), scenario_(scenario), clock_(clock), log_(log) {}

void ServerChecker::OnCall(int32_t call, const std::vector<tulip::Sequence>& sequences) {
  Call& facts = calls_[call];
  log_.Expect(facts.inputs.empty(), "{}: call {} came twice", name_, call);
  for (const tulip::Sequence& sequence : sequences) {
    const int32_t mark = sequence.ids[kInputMark];
    facts.inputs.push_back(mark);
    facts.num_tokens += sequence.num_tokens();
    inputs_[{call, mark}] = {.call = call,
                             .arrival = num_arrivals_++,
                             .num_tokens = sequence.num_tokens(),
                             .kind = sequence.ids[kKindMark],
                             .traffic_class = sequence.traffic_class,
                             .deadline = sequence.deadline};
  }
}

void ServerChecker::OnSubmit(int32_t call, const Status& status, const tulip::CoreLoad& before) {
  Call& facts = calls_[call];
  const auto limit = static_cast<int64_t>(before.tokens_per_second *
                                          static_cast<double>(scenario_.max_queue.count()) / 1000);
  const bool has_room =
      before.queued_tokens == 0 || before.queued_tokens + facts.num_tokens <= limit;
  log_.Add("{} call {}: {} inputs, {} tokens, {} wait of {}: {}", name_, call, facts.inputs.size(),
           facts.num_tokens, before.queued_tokens, limit,
           status.ok() ? "admitted" : status.message());
  switch (status.code()) {
    case StatusCode::kOk:
      log_.Expect(has_room, "{}: {} tokens and {} more are over the limit of {}", name_,
                  before.queued_tokens, facts.num_tokens, limit);
      facts.admitted = true;
      for (const int32_t input : facts.inputs) {
        waiting_[inputs_[{call, input}].arrival] = {call, input};
      }
      break;
    case StatusCode::kResourceExhausted:
      log_.Expect(!has_room, "{}: refused as full with {} of {} tokens", name_,
                  before.queued_tokens, limit);
      break;
    case StatusCode::kDeadlineExceeded:
      log_.Expect(inputs_[{call, facts.inputs.front()}].deadline.HasPassed(clock_.Now()),
                  "{}: call {} was refused as late and is not", name_, call);
      break;
    case StatusCode::kOutOfRange:
      log_.Expect(model_.max_input_tokens < scenario_.max_input_tokens,
                  "{}: call {} was refused: {}", name_, call, status.message());
      break;
    case StatusCode::kUnavailable:
      log_.Expect(!before.accepting, "{}: call {} was refused: {}", name_, call, status.message());
      break;
    default: log_.Expect(false, "{}: call {} was refused: {}", name_, call, status.ToString());
  }
}

void ServerChecker::OnCancel(int32_t call) {
  const auto found = calls_.find(call);
  if (found != calls_.end() && !found->second.cancelled) {
    found->second.cancelled = true;
    log_.Add("{} call {}: cancelled", name_, call);
  }
}

void ServerChecker::OnStep(int64_t step, const rose::Batch& batch) {
  log_.Add("{} step {}: {} inputs, {} tokens", name_, step, batch.num_sequences(),
           batch.num_tokens());
  log_.Expect(model_.is_ours(), "{}: another model computes what was meant for ours", name_);
  log_.Expect(batch.num_tokens() <= scenario_.step_tokens || batch.num_sequences() == 1,
              "{}: a step of {} tokens, target {}", name_, batch.num_tokens(),
              scenario_.step_tokens);
  log_.Expect(batch.num_sequences() >= 1 && batch.num_sequences() <= scenario_.max_batch_sequences,
              "{}: a step of {} inputs, limit {}", name_, batch.num_sequences(),
              scenario_.max_batch_sequences);
  std::vector<InputKey>& keys = steps_[step];
  log_.Expect(steps_.size() <= static_cast<size_t>(scenario_.steps_under_way),
              "{}: {} steps under way, limit {}", name_, steps_.size(), scenario_.steps_under_way);
  for (size_t i = 0; i < static_cast<size_t>(batch.num_sequences()); ++i) {
    const auto begin = static_cast<size_t>(batch.sequence_offsets[i]);
    keys.emplace_back(batch.token_ids[begin + kCallMark], batch.token_ids[begin + kInputMark]);
    CheckStepInput(step, keys.back(), batch.sequence_offsets[i + 1] - batch.sequence_offsets[i]);
  }
}

void ServerChecker::CheckStepInput(int64_t step, const InputKey& key, int32_t num_tokens) {
  const auto found = inputs_.find(key);
  if (found == inputs_.end()) {
    log_.Expect(false, "{}: step {} holds an input that nobody sent", name_, step);
    return;
  }
  Input& input = found->second;
  const std::string who =
      fmt::format("{} step {}: call {} input {}", name_, step, key.first, key.second);
  log_.Expect(num_tokens == input.num_tokens, "{} has another length", who);
  log_.Expect(!calls_[key.first].cancelled, "{} is cancelled", who);
  log_.Expect(!input.deadline.HasPassed(clock_.Now()), "{} is late", who);
  log_.Expect(calls_[key.first].admitted, "{} was not admitted", who);
  log_.Expect(input.state == State::kWaiting || input.state == State::kStepFailed,
              "{} is computed twice", who);
  if (input.state == State::kWaiting) {
    waiting_.erase(input.arrival);
    const auto last = last_formed_.find(input.traffic_class);
    log_.Expect(last == last_formed_.end() || last->second < input.arrival,
                "{} came before one of its class that was computed before", who);
    last_formed_[input.traffic_class] = input.arrival;
  }
  input.state = State::kInStep;
}

void ServerChecker::OnStepEnd(int64_t step, bool ok, std::span<const rose::RowStatus> statuses) {
  log_.Add("{} step {}: {}", name_, step, ok ? "ended" : "failed");
  const std::vector<InputKey>& keys = steps_[step];
  // Several rows that are not finite: some may only have lain beside the one that is to blame.
  const bool has_suspects = ok && std::ranges::count(statuses, rose::RowStatus::kNotFinite) > 1;
  failures_in_a_row_ = ok && !has_suspects ? 0 : failures_in_a_row_ + 1;
  for (size_t i = 0; i < keys.size(); ++i) {
    Input& input = inputs_[keys[i]];
    const bool failed = !ok || (has_suspects && statuses[i] == rose::RowStatus::kNotFinite);
    input.state = failed ? State::kStepFailed : State::kComputed;
    if (failed) {
      input.failed_alone = input.failed_alone || keys.size() == 1;
      input.given_up = failures_in_a_row_ > tulip::StepRetry::kMaxFailuresInARow;
    }
  }
  steps_.erase(step);
}

void ServerChecker::OnAnswer(int32_t call,
                             const std::vector<tulip::ChunkReply::Outcome>& outcomes) {
  Call& facts = calls_[call];
  log_.Expect(facts.admitted && !facts.answered, "{}: call {} is answered out of turn", name_,
              call);
  facts.answered = true;
  log_.Expect(outcomes.size() == facts.inputs.size(), "{}: call {} has {} outcomes for {} inputs",
              name_, call, outcomes.size(), facts.inputs.size());
  int64_t num_ok = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Input& input = inputs_[{call, facts.inputs[i]}];
    CheckOutcome(fmt::format("{}: call {} input {}", name_, call, facts.inputs[i]), facts, input,
                 outcomes[i].status);
    waiting_.erase(input.arrival);  // if it left the queue without a step
    input.state = State::kAnswered;
    num_ok += outcomes[i].status.ok() ? 1 : 0;
  }
  log_.Add("{} call {}: answered, {} of {} inputs ok", name_, call, num_ok, outcomes.size());
}

void ServerChecker::CheckOutcome(const std::string& who, const Call& call, const Input& input,
                                 const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      log_.Expect(input.state == State::kComputed && input.kind == kOrdinary,
                  "{} has a row and was not computed", who);
      break;
    case StatusCode::kCancelled: log_.Expect(call.cancelled, "{} was not cancelled", who); break;
    case StatusCode::kDeadlineExceeded:
      log_.Expect(input.deadline.HasPassed(clock_.Now()), "{} is not late", who);
      break;
    case StatusCode::kInternal:
      log_.Expect(input.kind == kNotFinite || input.failed_alone || input.given_up,
                  "{} failed for others: {}", who, status.message());
      break;
    case StatusCode::kUnavailable:  // the server stops
      log_.Expect(input.state == State::kWaiting || input.state == State::kStepFailed,
                  "{} was computed and is unavailable", who);
      break;
    default: log_.Expect(false, "{} has an odd outcome: {}", who, status.ToString());
  }
}

void ServerChecker::CheckLoad(const tulip::CoreLoad& load) {
  // The outcome of an input is known when all of its call is answered, so the dead among those that
  // wait may have left the queue already.
  int64_t all = 0;
  int64_t alive = 0;
  for (const auto& [arrival, key] : waiting_) {
    const Input& input = inputs_[key];
    const bool dead = calls_[key.first].cancelled || input.deadline.HasPassed(clock_.Now());
    all += input.num_tokens;
    alive += dead || abandoned_ ? 0 : input.num_tokens;
  }
  log_.Expect(alive <= load.queued_tokens && load.queued_tokens <= all,
              "{}: {} tokens are said to wait, {} to {} do", name_, load.queued_tokens, alive, all);
}

void ServerChecker::CheckEverythingIsAnswered() {
  for (const auto& [number, call] : calls_) {
    log_.Expect(!call.admitted || call.answered, "{}: call {} was never answered", name_, number);
  }
  log_.Expect(waiting_.empty() && steps_.empty(), "{}: {} inputs wait, {} steps are under way",
              name_, waiting_.size(), steps_.size());
}

}  // namespace bouquet::simulation
