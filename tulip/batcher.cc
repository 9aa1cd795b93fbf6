#include "tulip/batcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace bouquet::tulip {
namespace {

// The next step is launched this long before the one under way is expected to end: what a launch
// costs on CUDA, and the error of the estimate. Without meaning where one step is under way.
constexpr Microseconds kLaunchLead(100);
// A step this much later than expected is not coming back soon: readiness says so.
constexpr Microseconds kStepPatience(10'000'000);

CoreDescription WithStepTokens(CoreDescription description, const StepCost& cost) {
  if (description.step_tokens == 0) {
    description.step_tokens = cost.DefaultStepTokens(description.engine.limits.max_tokens);
  }
  return description;
}

}  // namespace

Result<CoreDescription> DescribeCore(const rose::EngineInfo& info, const CoreOptions& options) {
  CoreDescription description;
  description.model_name = options.model_name;
  description.identity = options.identity;
  description.engine = info;
  description.max_queue = options.max_queue;
  const rose::BatchLimits& limits = info.limits;

  description.model_max_tokens =
      options.model_max_tokens > 0 ? options.model_max_tokens : limits.max_positions;
  description.max_input_tokens =
      options.max_input_tokens > 0 ? options.max_input_tokens : description.model_max_tokens;
  const int32_t longest = std::min(description.model_max_tokens, limits.max_positions);
  if (description.max_input_tokens > longest) {
    return InvalidArgument(
        fmt::format("--max-input-tokens is more than the model allows: {}, "
                    "limit {}",
                    description.max_input_tokens, longest));
  }
  if (description.max_input_tokens > limits.max_tokens) {
    return InvalidArgument(
        fmt::format("the longest input does not fit a step of this engine: {} "
                    "tokens, largest step {}",
                    description.max_input_tokens, limits.max_tokens));
  }
  if (options.step_tokens < 0 || options.step_tokens > limits.max_tokens) {
    return InvalidArgument(fmt::format("--step-tokens must be 1..{}, the engine's largest step: {}",
                                       limits.max_tokens, options.step_tokens));
  }
  if (options.max_batch_sequences < 1 || options.max_batch_sequences > limits.max_sequences) {
    return InvalidArgument(fmt::format("--max-batch-sequences must be 1..{}: {}",
                                       limits.max_sequences, options.max_batch_sequences));
  }
  if (options.max_queue.count() < 1) {
    return InvalidArgument(
        fmt::format("--max-queue-ms must be at least 1: {}", options.max_queue.count()));
  }
  description.step_tokens = options.step_tokens;
  description.max_batch_sequences = options.max_batch_sequences;
  return description;
}

Batcher::Batcher(std::unique_ptr<StepEngine> engine, CoreDescription description,
                 const CoreOptions& options, std::span<const StepCost::Point> measured,
                 Metrics& metrics, const Clock& clock)
    : engine_(std::move(engine)),
      cost_(measured),
      description_(WithStepTokens(std::move(description), cost_)),
      clock_(clock),
      metrics_(metrics, description_.model_name),
      admission_(options.max_queue, cost_.TokensPerSecond(description_.step_tokens)),
      in_flight_(engine_->info().steps_under_way, kLaunchLead, clock),
      loop_(*engine_, admission_, in_flight_, metrics_, clock,
            {description_.step_tokens, description_.max_batch_sequences, options.bulk_age}, cost_),
      completer_(in_flight_, admission_, metrics_, clock) {}

Status Batcher::Submit(std::vector<Sequence> sequences, const std::shared_ptr<ChunkReply>& reply) {
  CHECK(reply != nullptr);
  const TimePoint now = clock_.Now();
  if (Status status = Check(sequences, now); !status.ok()) {
    (status.code() == StatusCode::kDeadlineExceeded ? metrics_.rejected_expired
                                                    : metrics_.rejected_invalid)
        .Increment();
    return status;
  }
  const model::OutputSpec& output = sequences.front().output;
  reply->Open(sequences.size(), Dimensions(output), output.dtype);
  int64_t num_tokens = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    num_tokens += sequences[i].num_tokens();
    sequences[i].index_in_chunk = static_cast<uint32_t>(i);
    sequences[i].reply = reply;
  }
  // Counted before the loop can take them out again, and back if they are refused.
  const auto num_sequences = static_cast<double>(sequences.size());
  metrics_.queue_tokens.Increment(static_cast<double>(num_tokens));
  metrics_.queue_sequences.Increment(num_sequences);
  Status status = admission_.Admit(sequences, num_tokens, now);
  if (!status.ok()) {
    metrics_.queue_tokens.Decrement(static_cast<double>(num_tokens));
    metrics_.queue_sequences.Decrement(num_sequences);
    (status.code() == StatusCode::kUnavailable ? metrics_.rejected_stopping
                                               : metrics_.rejected_full)
        .Increment();
  }
  return status;
}

Status Batcher::Check(const std::vector<Sequence>& sequences, TimePoint now) const {
  if (sequences.empty()) {
    return InvalidArgument("a chunk must hold at least one sequence", "sequences");
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (Status status = CheckSequence(sequences[i], sequences.front()); !status.ok()) {
      return Status(status.code(), status.message(), fmt::format("sequences[{}]", i));
    }
  }
  if (sequences.front().deadline.HasPassed(now)) {
    return DeadlineExceeded("deadline passed before the queue");
  }
  return {};
}

Status Batcher::CheckSequence(const Sequence& sequence, const Sequence& first) const {
  const rose::BatchLimits& limits = description_.engine.limits;
  const int32_t num_tokens = sequence.num_tokens();
  if (num_tokens == 0) {
    return InvalidArgument("a sequence must hold at least one token");
  }
  if (num_tokens > description_.model_max_tokens) {
    return InvalidArgument(fmt::format("input is longer than the model allows: {} tokens, limit {}",
                                       num_tokens, description_.model_max_tokens));
  }
  if (num_tokens > description_.max_input_tokens) {
    return OutOfRange(
        fmt::format("input is longer than allowed: {} tokens, limit {} "
                    "(--max-input-tokens)",
                    num_tokens, description_.max_input_tokens));
  }
  const auto [lowest, highest] = std::ranges::minmax(sequence.ids);
  if (lowest < 0 || highest >= limits.vocabulary_rows) {
    return InvalidArgument(fmt::format("token ids must be 0..{}: {}", limits.vocabulary_rows - 1,
                                       lowest < 0 ? lowest : highest));
  }
  if (!sequence.type_ids.empty() &&
      (sequence.type_ids.size() != sequence.ids.size() ||
       std::ranges::max(sequence.type_ids) >= std::max(limits.token_types, 1))) {
    return InvalidArgument(fmt::format("token types must be 0..{}, one per token",
                                       std::max(limits.token_types, 1) - 1));
  }
  if (sequence.pooling_start < 0 || sequence.pooling_start >= num_tokens) {
    return InvalidArgument(fmt::format("pooling must start within the sequence of {} tokens: {}",
                                       num_tokens, sequence.pooling_start));
  }
  if (sequence.output.dimensions > static_cast<uint32_t>(limits.width)) {
    return InvalidArgument(
        fmt::format("dimensions must be 1..{}: {}", limits.width, sequence.output.dimensions));
  }
  if (IsSignBits(sequence.output.dtype) && Dimensions(sequence.output) % 8 != 0) {
    return InvalidArgument(fmt::format("dimensions of sign bits must be a multiple of 8: {}",
                                       Dimensions(sequence.output)));
  }
  if (sequence.output != first.output) {
    return InvalidArgument("the sequences of one chunk must ask for the same output");
  }
  return {};
}

uint32_t Batcher::Dimensions(const model::OutputSpec& output) const {
  return output.dimensions == 0 ? static_cast<uint32_t>(description_.engine.limits.width)
                                : output.dimensions;
}

Status Batcher::CheckIdentity(std::string_view expected) const {
  if (expected.empty() || expected == description_.identity) {
    return {};
  }
  return FailedPrecondition(fmt::format("another model folder is served here: identity {}, "
                                        "expected {}",
                                        description_.identity, expected),
                            "identity");
}

CoreLoad Batcher::Load() const {
  const QueueState queue = admission_.state();
  CoreLoad load;
  load.queued_tokens = queue.queued_tokens;
  load.under_way_tokens = in_flight_.num_tokens();
  load.tokens_per_second = queue.tokens_per_second;
  load.accepting = admission_.accepting();
  load.overdue = in_flight_.IsOverdue(clock_.Now(), kStepPatience);
  return load;
}

}  // namespace bouquet::tulip
