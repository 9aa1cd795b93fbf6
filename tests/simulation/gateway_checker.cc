#include "tests/simulation/gateway_checker.h"

#include <algorithm>
#include <span>
#include <variant>

#include "tests/simulation/input_marks.h"

namespace bouquet::simulation {
namespace {

constexpr size_t kChunksPerReplica = 2;
constexpr std::chrono::milliseconds kRoomInterval(10);

bool IsElsewhereError(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kResourceExhausted;
}

/// May another replica do better?
bool IsWorthAnother(const Result<ivy::ChunkRows>& rows) {
  return rows.ok() ? std::ranges::any_of(rows->statuses, IsElsewhereError)
                   : IsElsewhereError(rows.status());
}

}  // namespace

void GatewayChecker::OnRequest(int32_t number, const ivy::EncodeRequest& request) {
  Request& facts = requests_[number];
  int64_t num_tokens = 0;
  for (const ivy::EncodeInput& input : request.inputs) {
    facts.inputs.push_back(std::get<std::vector<int32_t>>(input));
    num_tokens += static_cast<int64_t>(facts.inputs.back().size());
    request_of_input_[facts.inputs.back()[kInputMark]] = number;
  }
  facts.dimensions = request.output.dimensions == 0 ? Scenario::kWidth : request.output.dimensions;
  facts.deadline = request.deadline;
  log_.Add("request {}: {} inputs, {} tokens{}{}", number, facts.inputs.size(), num_tokens,
           request.traffic_class == model::TrafficClass::kBulk ? ", bulk" : "",
           facts.deadline.at == TimePoint::max()
               ? ""
               : fmt::format(", for {} us", std::chrono::duration_cast<Microseconds>(
                                                facts.deadline.at - clock_.Now())
                                                .count()));
}

void GatewayChecker::OnHangUp(int32_t number) {
  Request& request = requests_[number];
  if (!request.answered && !request.hung_up) {
    log_.Add("request {}: the client hangs up", number);
    request.hung_up = clock_.Now();
  }
}

void GatewayChecker::OnSend(size_t replica, int32_t call, const ivy::Chunk& chunk) {
  const int32_t first_input = chunk.sequences.front().ids[kInputMark];
  const bool is_new = !chunks_.contains(first_input);
  Chunk& facts = chunks_[first_input];
  if (is_new) {
    facts.request = request_of_input_[first_input];
    facts.is_first = requests_[facts.request].inputs.front()[kInputMark] == first_input;
  }
  Request& request = requests_[facts.request];
  const std::string who = fmt::format("request {}, {} inputs from {}", facts.request,
                                      chunk.sequences.size(), first_input);
  log_.Add("{} go to replica {} as call {}", who, replica, call);
  log_.Expect(!request.answered, "{}: sent after the answer", who);
  if (facts.sends.empty() || !facts.sends.back().under_way) {
    if (!facts.sends.empty()) {
      CheckSendAgain(facts, replica, request, who);
    }
    const bool in_turn = !facts.sends.empty() && facts.sends.back().ended == clock_.Now();
    facts.sends_in_turn = in_turn ? facts.sends_in_turn + 1 : 1;
  } else {
    log_.Expect(false, "{}: sent while it is under way", who);
  }
  facts.sends.push_back({.replica = replica});
  ++request.chunks_under_way;
  log_.Expect(
      request.chunks_under_way <= kChunksPerReplica * static_cast<size_t>(scenario_.num_machines),
      "{}: {} chunks under way", who, request.chunks_under_way);
}

void GatewayChecker::CheckSendAgain(const Chunk& chunk, size_t replica, const Request& request,
                                    const std::string& who) {
  const Send& last = chunk.sends.back();
  log_.Expect(IsWorthAnother(last.rows), "{}: sent again after {}", who,
              last.rows.status().ToString());
  if (last.ended == clock_.Now()) {
    log_.Expect(chunk.sends_in_turn == 1, "{}: sent {} times", who, chunk.sends_in_turn + 1);
    log_.Expect(replica != last.replica, "{}: sent twice to replica {}", who, replica);
    log_.Expect(!request.hung_up, "{}: sent again though nobody wants it", who);
  } else {
    log_.Expect(last.rows.code() == StatusCode::kResourceExhausted &&
                    clock_.Now() >= last.ended + kRoomInterval,
                "{}: sent again after {}", who, last.rows.status().ToString());
    log_.Expect(!chunk.is_first, "{}: waits for room before it has begun", who);
    log_.Expect(!request.hung_up && !request.deadline.HasPassed(clock_.Now()),
                "{}: sent again though it is dead", who);
  }
}

void GatewayChecker::OnSendEnd(int32_t first_input, const Result<ivy::ChunkRows>& rows) {
  Chunk& chunk = chunks_[first_input];
  Send& send = chunk.sends.back();
  log_.Expect(send.under_way, "input {}: its chunk came back twice", first_input);
  send.under_way = false;
  send.ended = clock_.Now();
  Request& request = requests_[chunk.request];
  --request.chunks_under_way;
  if (rows.ok()) {
    for (const Status& status : rows->statuses) {
      ++request.send_errors[status.code()];
    }
    send.rows = ivy::ChunkRows{.values = {}, .statuses = rows->statuses};
  } else {
    ++request.send_errors[rows.code()];
    send.rows = rows.status();
  }
  const bool goes_elsewhere = chunk.sends_in_turn == 1 && scenario_.num_machines > 1;
  if (rows.code() == StatusCode::kUnavailable && !goes_elsewhere && !request.failed) {
    request.failed = clock_.Now();
  }
}

void GatewayChecker::OnReadiness(size_t replica, bool ready) {
  if (!ready) {
    ready_.erase(replica);
    return;
  }
  if (ready_.empty()) {
    none_ready_until_ = clock_.Now();
  }
  ready_.insert(replica);
}

void GatewayChecker::OnAnswer(int32_t number, const Result<ivy::EncodedRows>& answer) {
  Request& request = requests_[number];
  const std::string who = fmt::format("request {}", number);
  const TimePoint now = clock_.Now();
  log_.Add("{}: {}", who, answer.ok() ? "rows" : answer.status().ToString());
  log_.Expect(!request.answered, "{}: answered twice", who);
  request.answered = true;
  log_.Expect(request.deadline.at == TimePoint::max() || now <= request.deadline.at + kAnswerBound,
              "{}: answered too long after its deadline", who);
  log_.Expect(!request.hung_up || now <= *request.hung_up + kAnswerBound + scenario_.longest_lag,
              "{}: ended too long after the client hung up", who);
  log_.Expect(!request.failed || now <= *request.failed + kAnswerBound + scenario_.longest_lag,
              "{}: ended too long after one of its chunks failed", who);
  log_.Expect(request.chunks_under_way == 0, "{}: answered with {} chunks under way", who,
              request.chunks_under_way);
  if (answer.ok()) {
    ++num_ok_;
    CheckRows(request, *answer, who);
  } else {
    CheckError(request, answer.status(), who);
  }
}

void GatewayChecker::CheckRows(const Request& request, const ivy::EncodedRows& rows,
                               const std::string& who) {
  const size_t num_inputs = request.inputs.size();
  log_.Expect(rows.dimensions == request.dimensions && rows.statuses.size() == num_inputs &&
                  rows.token_counts.size() == num_inputs &&
                  rows.values.size() == num_inputs * rows.dimensions,
              "{}: the rows have another shape", who);
  if (!log_.violations().empty()) {
    return;
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    const std::vector<int32_t>& ids = request.inputs[i];
    const auto row = std::span(rows.values).subspan(i * rows.dimensions, rows.dimensions);
    const bool may_fail = ids[kKindMark] != kOrdinary || scenario_.step_failure > 0;
    log_.Expect(rows.token_counts[i] == static_cast<int32_t>(ids.size()),
                "{}: input {} has another length", who, i);
    if (rows.statuses[i].ok()) {
      log_.Expect(ids[kKindMark] == kOrdinary, "{}: input {} cannot have a row", who, i);
      log_.Expect(std::ranges::equal(row, RowOf(ids, rows.dimensions)),
                  "{}: input {} has the row of another", who, i);
    } else {
      // Many poisoned inputs in a row may look like a broken engine: ServerChecker knows better.
      log_.Expect(rows.statuses[i].code() == StatusCode::kInternal &&
                      (may_fail || scenario_.poison_share > 0),
                  "{}: input {} failed: {}", who, i, rows.statuses[i].ToString());
      log_.Expect(std::ranges::count(row, 0.0F) == std::ssize(row),
                  "{}: input {} failed and has a row", who, i);
    }
  }
}

void GatewayChecker::CheckError(const Request& request, const Status& error,
                                const std::string& who) {
  const auto was_sent_back = [&request](StatusCode code) {
    return request.send_errors.contains(code);
  };
  switch (error.code()) {
    case StatusCode::kDeadlineExceeded:
      log_.Expect(request.deadline.HasPassed(clock_.Now()), "{}: is not late", who);
      break;
    case StatusCode::kCancelled:
      log_.Expect(request.hung_up.has_value(), "{}: cancelled by nobody", who);
      break;
    case StatusCode::kResourceExhausted:
      log_.Expect(was_sent_back(StatusCode::kResourceExhausted), "{}: no queue was full", who);
      break;
    case StatusCode::kUnavailable:
      log_.Expect(scenario_.has_faults, "{}: unavailable where nothing fails: {}", who,
                  error.message());
      log_.Expect(was_sent_back(StatusCode::kUnavailable) || ready_.empty() ||
                      clock_.Now() <= none_ready_until_ + kAnswerBound + scenario_.longest_lag,
                  "{}: no replica was lost", who);
      break;
    default: log_.Expect(false, "{}: {}", who, error.ToString());
  }
}

void GatewayChecker::CheckEverythingIsAnswered() {
  for (const auto& [number, request] : requests_) {
    log_.Expect(request.answered, "request {}: never answered", number);
  }
}

}  // namespace bouquet::simulation
