#include "ivy/dispatch/in_process_replica.h"

#include <memory>
#include <utility>

#include "ivy/dispatch/resumption.h"
#include "tulip/core.h"

namespace bouquet::ivy {
namespace {

/// The reply slot that resumes a handler.
class AwaitedReply final : public tulip::ChunkReply, public Resumption {
 public:
  using ChunkReply::ChunkReply;

 protected:
  void OnComplete() override { Resume(); }
};

ReplicaDescription DescriptionOf(const tulip::CoreDescription& core) {
  ReplicaDescription description;
  description.model_name = core.model_name;
  description.identity = core.identity;
  description.numerics_fingerprint = core.engine.numerics_fingerprint;
  description.device = core.engine.device;
  description.device_description = core.engine.device_description;
  description.dtype = core.engine.dtype;
  description.width = core.engine.limits.width;
  description.vocabulary_rows = core.engine.limits.vocabulary_rows;
  description.model_max_tokens = core.model_max_tokens;
  description.max_input_tokens = core.max_input_tokens;
  description.step_tokens = core.step_tokens;
  description.max_batch_sequences = core.max_batch_sequences;
  description.max_queue_ms = core.max_queue.count();
  description.weight_bytes = core.engine.weight_bytes;
  return description;
}

std::vector<tulip::Sequence> MoveSequences(Chunk& chunk) {
  std::vector<tulip::Sequence> sequences(chunk.sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    text::TokenSequence& tokens = chunk.sequences[i];
    tulip::Sequence& sequence = sequences[i];
    sequence.ids = std::move(tokens.ids);
    sequence.type_ids = std::move(tokens.type_ids);
    sequence.pooling_start = tokens.pooling_start;
    sequence.output = chunk.output;
    sequence.traffic_class = chunk.traffic_class;
    sequence.deadline = chunk.deadline;
  }
  return sequences;
}

ChunkRows TakeRows(tulip::ChunkReply& reply) {
  ChunkRows rows;
  rows.dimensions = reply.dimensions();
  rows.values = std::move(reply.rows());
  rows.statuses.reserve(reply.outcomes().size());
  for (tulip::ChunkReply::Outcome& outcome : reply.outcomes()) {
    rows.statuses.push_back(std::move(outcome.status));
    rows.queue_us += outcome.queue.count();
    rows.step_us += outcome.step.count();
  }
  return rows;
}

}  // namespace

InProcessReplica::InProcessReplica(tulip::Core& core)
    : core_(core), description_(DescriptionOf(core.Describe())) {}

boost::asio::awaitable<Result<ChunkRows>> InProcessReplica::Submit(Chunk chunk) {
  auto reply = std::make_shared<AwaitedReply>(chunk.cancelled);
  CO_RETURN_IF_ERROR(core_.Submit(MoveSequences(chunk), reply));
  co_await Resumption::Wait(reply, chunk.deadline);
  if (!reply->complete()) {
    // The deadline came first. Tulip answers into the slot later, and nobody looks at it.
    co_return DeadlineExceeded(reply->started() ? "deadline passed in the engine"
                                                : "deadline passed in the queue");
  }
  co_return TakeRows(*reply);
}

ReplicaLoad InProcessReplica::Load() const {
  const tulip::CoreLoad core = core_.Load();
  ReplicaLoad load;
  load.queued_tokens = core.queued_tokens + core.under_way_tokens;
  load.tokens_per_second = core.tokens_per_second;
  load.ready = core.accepting && !core.overdue;
  if (!core.accepting) {
    load.reason_unready = "stopping";
  } else if (core.overdue) {
    load.reason_unready = "a step is overdue";
  }
  return load;
}

}  // namespace bouquet::ivy
