#include "tulip/serving_loop.h"

#include <utility>

#include "tulip/chunk_reply.h"

namespace bouquet::tulip {
namespace {

Microseconds Between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<Microseconds>(to - from);
}

void Answer(Sequence& sequence, Status status, TimePoint now) {
  ChunkReply::Outcome outcome;
  outcome.status = std::move(status);
  outcome.queue = Between(sequence.arrival, now);
  sequence.reply->Finish(sequence.index_in_chunk, std::move(outcome));
}

int64_t CountTokens(const std::vector<Sequence>& sequences) {
  int64_t total = 0;
  for (const Sequence& sequence : sequences) {
    total += sequence.num_tokens();
  }
  return total;
}

}  // namespace

ServingLoop::ServingLoop(StepEngine& engine, Admission& admission, InFlight& in_flight,
                         CoreMetrics& metrics, const Clock& clock, const SchedulerOptions& options,
                         const StepCost& cost)
    : engine_(engine),
      admission_(admission),
      in_flight_(in_flight),
      metrics_(metrics),
      clock_(clock),
      step_tokens_(options.step_tokens),
      scheduler_(options),
      cost_(cost),
      graph_use_(engine.graph_use()) {}

void ServingLoop::Run() {
  for (;;) {
    switch (Turn()) {
      case NextTurn::kNow: break;
      case NextTurn::kAtLaunchMoment: in_flight_.WaitUntilLaunch(); break;
      case NextTurn::kOnArrival: admission_.WaitForArrivals(); break;
      case NextTurn::kWhenNoneUnderWay: in_flight_.WaitUntilEmpty(); break;
      case NextTurn::kNever: return;
    }
  }
}

ServingLoop::NextTurn ServingLoop::Turn() {
  if (!in_flight_.MayLaunch()) {
    return NextTurn::kAtLaunchMoment;
  }
  const bool none_under_way = LearnFromSteps();
  admission_.MoveArrivalsTo(scheduler_);
  if (admission_.abandoned()) {
    AbandonWaiting();
  }
  if (scheduler_.empty() && retry_.empty()) {
    if (!admission_.exhausted()) {
      return NextTurn::kOnArrival;
    }
    if (!none_under_way) {
      return NextTurn::kWhenNoneUnderWay;  // a step may fail and come back to be tried again
    }
    in_flight_.Close();
    return NextTurn::kNever;
  }
  if (FormBatch()) {
    Launch();  // first, so that the engine does not wait for the answers below
  }
  AnswerDropped();
  return NextTurn::kNow;
}

// True when no step is under way.
bool ServingLoop::LearnFromSteps() {
  const bool none_under_way = in_flight_.TakeOutcomes(outcomes_);
  if (outcomes_.empty()) {
    return none_under_way;
  }
  for (StepOutcome& outcome : outcomes_) {
    if (outcome.error.ok()) {
      cost_.Observe(outcome.num_tokens, static_cast<double>(outcome.duration.count()));
      retry_.NoteSuccess();
      continue;
    }
    if (!outcome.not_finite) {
      metrics_.failed_steps.Increment();
    }
    const auto failed = static_cast<double>(outcome.failed.size());
    if (retry_.Add(outcome.failed, /*was_whole_step=*/!outcome.not_finite)) {
      continue;
    }
    const TimePoint now = clock_.Now();
    for (Sequence& sequence : outcome.failed) {
      Answer(sequence,
             outcome.not_finite ? outcome.error
                                : Internal("the step failed: " + outcome.error.message()),
             now);
    }
    (outcome.not_finite ? metrics_.answered_not_finite : metrics_.answered_failed)
        .Increment(failed);
  }
  outcomes_.clear();
  admission_.SetTokensPerSecond(cost_.TokensPerSecond(step_tokens_));
  return none_under_way;
}

bool ServingLoop::FormBatch() {
  const TimePoint now = clock_.Now();
  if (!retry_.empty()) {
    return retry_.NextBatch(now, batch_);  // these have left the queue already
  }
  const int64_t sequences_before = scheduler_.num_sequences();
  const int64_t tokens_before = scheduler_.num_tokens();
  const bool has_batch = scheduler_.NextBatch(now, batch_);
  const int64_t tokens_left = tokens_before - scheduler_.num_tokens();
  admission_.LeaveQueue(tokens_left);
  metrics_.queue_tokens.Decrement(static_cast<double>(tokens_left));
  metrics_.queue_sequences.Decrement(
      static_cast<double>(sequences_before - scheduler_.num_sequences()));
  return has_batch;
}

void ServingLoop::Launch() {
  for (const Sequence& sequence : batch_.sequences) {
    sequence.reply->MarkStarted();
  }
  const auto num_sequences = static_cast<int32_t>(batch_.sequences.size());
  const int32_t num_tokens = batch_.num_tokens();
  const int32_t padded = engine_.PaddedTokens(num_tokens, num_sequences);
  const Microseconds expected(static_cast<int64_t>(cost_.StepUs(num_tokens)));
  const TimePoint started = clock_.Now();
  in_flight_.Push(engine_.Step(batch_.input), batch_, started, expected);  // takes the sequences

  metrics_.step_tokens.Observe(num_tokens);
  metrics_.step_sequences.Observe(num_sequences);
  metrics_.step_fill_ratio.Observe(static_cast<double>(num_tokens) / step_tokens_);
  if (padded > num_tokens) {
    metrics_.padding_tokens.Increment(padded - num_tokens);
  }
  CountLaunch();
}

// What became of the step shows in the engine's own counts.
void ServingLoop::CountLaunch() {
  const GraphUse use = engine_.graph_use();
  if (use.replays > graph_use_.replays) {
    metrics_.replayed_steps.Increment();
  } else if (use.captures > graph_use_.captures) {
    metrics_.captured_steps.Increment();
  } else {
    metrics_.eager_steps.Increment();
  }
  if (use.evictions > graph_use_.evictions) {
    metrics_.evicted_graphs.Increment(static_cast<double>(use.evictions - graph_use_.evictions));
  }
  graph_use_ = use;
}

void ServingLoop::AnswerDropped() {
  if (batch_.cancelled.empty() && batch_.expired.empty()) {
    return;
  }
  const TimePoint now = clock_.Now();
  metrics_.cancelled_in_queue.Increment(static_cast<double>(batch_.cancelled.size()));
  metrics_.expired_in_queue.Increment(static_cast<double>(batch_.expired.size()));
  metrics_.spared_tokens.Increment(
      static_cast<double>(CountTokens(batch_.cancelled) + CountTokens(batch_.expired)));
  for (Sequence& sequence : batch_.cancelled) {
    Answer(sequence, Cancelled("cancelled in the queue"), now);
  }
  for (Sequence& sequence : batch_.expired) {
    Answer(sequence, DeadlineExceeded("deadline passed in the queue"), now);
  }
  batch_.cancelled.clear();
  batch_.expired.clear();
}

void ServingLoop::AbandonWaiting() {
  std::vector<Sequence> waiting;
  scheduler_.TakeAll(waiting);
  const int64_t num_tokens = CountTokens(waiting);
  admission_.LeaveQueue(num_tokens);
  metrics_.queue_tokens.Decrement(static_cast<double>(num_tokens));
  metrics_.queue_sequences.Decrement(static_cast<double>(waiting.size()));
  retry_.TakeAll(waiting);
  metrics_.abandoned.Increment(static_cast<double>(waiting.size()));
  const TimePoint now = clock_.Now();
  for (Sequence& sequence : waiting) {
    Answer(sequence, Unavailable("the server stopped before this was computed").WithRetryAfter(1),
           now);
  }
}

}  // namespace bouquet::tulip
