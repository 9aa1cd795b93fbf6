#include "tests/simulation/simulated_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "tests/simulation/input_marks.h"

namespace bouquet::simulation {

using NextTurn = tulip::ServingLoop::NextTurn;
using State = ivy::ReplicaLedger::ProbeAnswer::State;

class SimulatedServer::Reply final : public tulip::ChunkReply {
 public:
  Reply(std::stop_token cancelled, SimulatedServer& server, int32_t call)
      : ChunkReply(std::move(cancelled)), server_(server), call_(call) {}

 protected:
  void OnComplete() override { server_.OnAnswered(call_, *this); }

 private:
  SimulatedServer& server_;
  const int32_t call_;
};

SimulatedServer::SimulatedServer(std::string name, const ServedModel& model,
                                 const Scenario& scenario, EventQueue& events, EventLog& log,
                                 Random random, std::chrono::microseconds loading,
                                 std::function<void()> on_serving)
    : scenario_(scenario),
      events_(events),
      log_(log),
      random_(random),
      checker_(std::move(name), model, scenario, events, log),
      on_serving_(std::move(on_serving)),
      process_(events) {
  process_.After(loading, [this] { Load(); });
}

SimulatedServer::~SimulatedServer() = default;

void SimulatedServer::Load() {
  auto engine = std::make_unique<SimulatedEngine>(
      scenario_, model().fingerprint, process_, checker_, random_.Fork(),
      [this] { process_.After(Lag(), [this] { TakeCompleterTurn(); }); });
  engine_ = engine.get();
  const tulip::CoreOptions options{.model_name = "simulated",
                                   .identity = model().identity,
                                   .max_input_tokens = model().max_input_tokens,
                                   .step_tokens = scenario_.step_tokens,
                                   .max_batch_sequences = scenario_.max_batch_sequences,
                                   .max_queue = scenario_.max_queue,
                                   .bulk_age = scenario_.bulk_age};
  Result<tulip::CoreDescription> description = tulip::DescribeCore(engine->info(), options);
  CHECK(description.ok());
  std::vector<tulip::StepCost::Point> points;
  for (int32_t tokens = 16; scenario_.measured && tokens <= scenario_.step_tokens; tokens *= 4) {
    const auto time = SimulatedEngine::StepTime(scenario_, tokens);
    points.push_back({tokens, static_cast<double>(time.count()) / 1000});
  }
  batcher_ = std::make_unique<tulip::Batcher>(std::move(engine), std::move(description).value(),
                                              options, points, metrics_, events_);
  log_.Add("{} serves", name());
  PlanLoopTurn(events_.Now());
  on_serving_();
}

void SimulatedServer::Encode(int32_t call, int64_t connection, const std::string& identity,
                             const ivy::Chunk& chunk, Deadline deadline, AnswerFunction answer) {
  if (draining_ || batcher_ == nullptr) {
    const char* reason = draining_ ? "the server is stopping" : "the model is loading";
    return answer({Unavailable(reason).WithRetryAfter(1), std::nullopt});
  }
  if (const Status status = batcher_->CheckIdentity(identity); !status.ok()) {
    return answer({status, std::nullopt});
  }
  std::vector<tulip::Sequence> sequences(chunk.sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i].ids = chunk.sequences[i].ids;
    sequences[i].ids[kCallMark] = call;
    sequences[i].output = chunk.output;
    sequences[i].traffic_class = chunk.traffic_class;
    sequences[i].deadline = deadline;
  }
  Call& facts = calls_[call];
  facts.connection = connection;
  facts.answer = std::move(answer);
  facts.reply = std::make_shared<Reply>(facts.cancelled.get_token(), *this, call);
  checker_.OnCall(call, sequences);
  const tulip::CoreLoad before = batcher_->Load();
  const Status status = batcher_->Submit(std::move(sequences), facts.reply);
  checker_.OnSubmit(call, status, before);
  if (!status.ok()) {
    const AnswerFunction refuse = std::move(facts.answer);
    calls_.erase(call);
    return refuse({status, std::nullopt});
  }
  if (deadline.at != TimePoint::max()) {
    process_.At(deadline.at + Lag(), [this, call] { Cancel(call); });  // as gRPC does
  }
  LookForWork();
}

void SimulatedServer::Cancel(int32_t call) {
  const auto found = calls_.find(call);
  if (found != calls_.end()) {
    checker_.OnCancel(call);
    found->second.cancelled.request_stop();
  }
}

void SimulatedServer::LoseConnection(int64_t connection) {
  for (auto& [number, call] : calls_) {
    if (call.connection == connection) {
      checker_.OnCancel(number);
      call.cancelled.request_stop();
    }
  }
}

void SimulatedServer::Describe(const std::function<void(ivy::ReplicaLedger::ProbeAnswer)>& answer) {
  ivy::ReplicaLedger::ProbeAnswer facts;
  if (draining_ || batcher_ == nullptr) {
    facts.state = State::kNotServing;
    facts.reason = draining_ ? "the server is stopping" : "the model is loading";
    return answer(std::move(facts));
  }
  const tulip::CoreLoad load = batcher_->Load();
  const tulip::CoreDescription& core = batcher_->Describe();
  facts.state = load.overdue ? State::kStalled : State::kServing;
  facts.reason = load.overdue ? "a step of the engine is overdue" : "";
  facts.description = {.model_name = core.model_name,
                       .identity = core.identity,
                       .numerics_fingerprint = core.engine.numerics_fingerprint,
                       .device = core.engine.device,
                       .dtype = core.engine.dtype,
                       .width = core.engine.limits.width,
                       .vocabulary_rows = core.engine.limits.vocabulary_rows,
                       .model_max_tokens = core.model_max_tokens,
                       .max_input_tokens = core.max_input_tokens,
                       .step_tokens = core.step_tokens,
                       .max_batch_sequences = core.max_batch_sequences,
                       .max_queue_ms = core.max_queue.count()};
  facts.queued_tokens = load.queued_tokens + load.under_way_tokens;
  facts.tokens_per_second = load.tokens_per_second;
  answer(std::move(facts));
}

void SimulatedServer::OnAnswered(int32_t call, Reply& reply) {
  checker_.OnAnswer(call, reply.outcomes());
  const auto found = calls_.find(call);
  CHECK(found != calls_.end());
  ivy::ChunkRows rows;
  rows.dimensions = reply.dimensions();
  rows.values = std::move(reply.rows());
  for (tulip::ChunkReply::Outcome& outcome : reply.outcomes()) {
    rows.statuses.push_back(std::move(outcome.status));
    rows.queue_us += outcome.queue.count();
    rows.step_us += outcome.step.count();
  }
  const tulip::CoreLoad load = batcher_->Load();
  const AnswerFunction answer = std::move(found->second.answer);
  calls_.erase(found);
  answer({std::move(rows), load.queued_tokens + load.under_way_tokens});
}

void SimulatedServer::PlanLoopTurn(TimePoint at) {
  if (at >= loop_turn_at_) {
    return;
  }
  loop_turn_at_ = at;
  process_.At(at, [this, number = ++loop_turn_number_] {
    if (number == loop_turn_number_) {
      TakeLoopTurn();
    }
  });
}

void SimulatedServer::TakeLoopTurn() {
  loop_turn_at_ = TimePoint::max();
  loop_waits_for_ = batcher_->loop().Turn();
  checker_.CheckLoad(batcher_->Load());
  if (loop_waits_for_ == NextTurn::kNow) {
    PlanLoopTurn(events_.Now());
  } else {
    LookForWork();
  }
}

void SimulatedServer::TakeCompleterTurn() {
  batcher_->completer().Turn();
  LookForWork();
}

/// Has what the loop waits for come about?
void SimulatedServer::LookForWork() {
  switch (loop_waits_for_) {
    case NextTurn::kNow: break;
    case NextTurn::kAtLaunchMoment:
      if (const std::optional<TimePoint> moment = batcher_->in_flight().LaunchMoment()) {
        PlanLoopTurn(std::max(*moment, events_.Now() + Lag()));
      }
      break;
    case NextTurn::kOnArrival:
      if (batcher_->admission().HasNews()) {
        PlanLoopTurn(events_.Now() + Lag());
      }
      break;
    case NextTurn::kWhenNoneUnderWay:
      if (batcher_->in_flight().num_tokens() == 0) {
        PlanLoopTurn(events_.Now() + Lag());
      }
      break;
    case NextTurn::kNever: EndWhenDrained(); break;
  }
}

void SimulatedServer::Drain(std::chrono::milliseconds timeout, std::function<void()> ended) {
  log_.Add("{} drains", name());
  draining_ = true;
  on_drained_ = std::move(ended);
  if (batcher_ == nullptr) {
    return EndWhenDrained();
  }
  batcher_->Close();
  process_.After(timeout, [this] {
    checker_.OnAbandon();
    batcher_->Abandon();
    LookForWork();
  });
  LookForWork();
}

void SimulatedServer::EndWhenDrained() {
  if (!on_drained_) {
    return;
  }
  if (batcher_ != nullptr) {
    checker_.CheckEverythingIsAnswered();
    log_.Expect(calls_.empty(), "{}: {} calls are left by the drain", name(), calls_.size());
  }
  log_.Add("{} has drained", name());
  // Not from within the turn: it ends the process.
  process_.After(std::chrono::milliseconds(0), std::exchange(on_drained_, nullptr));
}

void SimulatedServer::StallNextStep(std::chrono::milliseconds stall) {
  if (engine_ != nullptr) {
    has_stalled_ = has_stalled_ || stall > stall.zero();
    engine_->StallNextStep(stall);
  }
}

void SimulatedServer::CheckIdle() {
  checker_.CheckEverythingIsAnswered();
  log_.Expect(calls_.empty(), "{}: {} calls are never answered", name(), calls_.size());
  const tulip::CoreLoad load = batcher_->Load();
  log_.Expect(load.queued_tokens == 0 && load.under_way_tokens == 0 && !load.overdue,
              "{}: {} tokens wait and {} are under way at the end", name(), load.queued_tokens,
              load.under_way_tokens);
}

}  // namespace bouquet::simulation
