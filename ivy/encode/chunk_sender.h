#pragma once

#include <memory>
#include <span>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/dispatch/timers.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/gatherer.h"
#include "ivy/encode/splitter.h"
#include "text/text_pipeline.h"

namespace bouquet::ivy {

/// Sends the chunks of one request to the replicas and gives their answers to the gatherer. Two
/// chunks per replica are under way at a time: one in a step, one waiting for the next, so that
/// the engine never waits for us and a long request does not fill the queue. A request that finds
/// the queue full is refused at once; one that has begun waits for room. The first error cancels
/// the rest. One request, one call of Send.
class ChunkSender {
 public:
  /// References must outlive Send.
  ChunkSender(ReplicaPool& pool, const EncodeRequest& request,
              std::vector<text::TokenSequence> sequences, const Clock& clock, const Timers& timers);

  /// Error: see Encoder::Encode.
  boost::asio::awaitable<Status> Send(std::span<const ChunkRange> ranges, Gatherer& gatherer);

 private:
  struct Progress;

  boost::asio::awaitable<Status> SendWhole(const ChunkRange& range, Gatherer& gatherer);
  boost::asio::awaitable<void> SendInTurn(Progress& progress);
  boost::asio::awaitable<Result<ChunkRows>> SubmitWhenThereIsRoom(Progress& progress,
                                                                  size_t range_index);
  Chunk MakeChunk(std::vector<text::TokenSequence> sequences) const;

  ReplicaPool& pool_;
  const EncodeRequest& request_;
  std::vector<text::TokenSequence> sequences_;  // [num_inputs]
  const Clock& clock_;
  const Timers& timers_;
};

}  // namespace bouquet::ivy
