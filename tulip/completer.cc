#include "tulip/completer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace bouquet::tulip {
namespace {

constexpr const char* kNotFinite = "the model's result for this input is not finite";

Microseconds Between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<Microseconds>(to - from);
}

const model::RowBlock& BlockOf(const rose::StepResult& result, model::Head head) {
  const auto block = std::ranges::find(result.blocks, head, &model::RowBlock::head);
  CHECK(block != result.blocks.end());  // the engine answers every head that the batch asks for
  return *block;
}

std::span<const std::byte> RowOf(const model::RowBlock& block, size_t sequence_index,
                                 size_t row_bytes) {
  CHECK_LE(row_bytes, block.stride());
  const size_t row = block.offsets[sequence_index];
  CHECK_EQ(block.offsets[sequence_index + 1], row + 1);
  CHECK_LE((row + 1) * block.stride(), block.data.size());
  return block.data.subspan(row * block.stride(), row_bytes);
}

}  // namespace

void Completer::Run() {
  while (StepInFlight* step = in_flight_.WaitForFront()) {
    Finish(*step);
  }
}

bool Completer::Turn() {
  StepInFlight* step = in_flight_.Front();
  if (step == nullptr || !step->result.IsReady()) {
    return false;
  }
  Finish(*step);
  return true;
}

void Completer::Finish(StepInFlight& step) {
  Result<rose::StepResult> result = step.result.Wait();
  const TimePoint ended = clock_.Now();
  const TimePoint began = std::max(step.started, previous_end_);  // steps run in order
  previous_end_ = ended;

  StepOutcome outcome;
  outcome.num_tokens = step.num_tokens;
  outcome.duration = Between(began, ended);
  metrics_.step_seconds.Observe(std::chrono::duration<double>(ended - began).count());
  if (result.ok()) {
    Deliver(*result, step, began, ended, outcome);
  } else {
    outcome.error = std::move(result).status();
    outcome.failed = std::move(step.sequences);
  }
  const bool failed = !outcome.error.ok();
  in_flight_.PopFront(std::move(outcome));
  if (failed) {
    admission_.Wake();  // the loop may be waiting for arrivals
  }
}

void Completer::Deliver(const rose::StepResult& result, StepInFlight& step, TimePoint began,
                        TimePoint ended, StepOutcome& step_outcome) {
  CHECK_EQ(result.statuses.size(), step.sequences.size());
  const bool tries_again = std::ranges::count(result.statuses, rose::RowStatus::kNotFinite) > 1;
  int64_t not_finite = 0;
  int64_t expired = 0;
  int64_t cancelled = 0;
  for (size_t i = 0; i < step.sequences.size(); ++i) {
    Sequence& sequence = step.sequences[i];
    ChunkReply& reply = *sequence.reply;
    ChunkReply::Outcome outcome;
    outcome.queue = Between(sequence.arrival, began);
    outcome.step = Between(began, ended);
    metrics_.queue_seconds.Observe(std::chrono::duration<double>(outcome.queue).count());
    if (reply.cancelled()) {
      outcome.status = Cancelled("cancelled in the engine");
      ++cancelled;
    } else if (sequence.deadline.HasPassed(ended)) {
      outcome.status = DeadlineExceeded("deadline passed in the engine");
      ++expired;
    } else if (result.statuses[i] == rose::RowStatus::kNotFinite) {
      if (tries_again) {
        step_outcome.failed.push_back(std::move(sequence));
        continue;
      }
      outcome.status = Internal(kNotFinite);
      ++not_finite;
    } else {
      reply.PutRow(sequence.index_in_chunk,
                   RowOf(BlockOf(result, sequence.output.head), i, reply.row_bytes()));
    }
    reply.Finish(sequence.index_in_chunk, std::move(outcome));
  }
  if (!step_outcome.failed.empty()) {
    step_outcome.error = Internal(kNotFinite);
    step_outcome.not_finite = true;
  }
  const auto total = static_cast<int64_t>(step.sequences.size() - step_outcome.failed.size());
  metrics_.answered_ok.Increment(static_cast<double>(total - not_finite - expired - cancelled));
  metrics_.answered_not_finite.Increment(static_cast<double>(not_finite));
  metrics_.expired_in_step.Increment(static_cast<double>(expired));
  metrics_.cancelled_in_step.Increment(static_cast<double>(cancelled));
}

}  // namespace bouquet::tulip
