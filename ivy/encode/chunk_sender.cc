#include "ivy/encode/chunk_sender.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include "ivy/dispatch/resumption.h"

namespace bouquet::ivy {
namespace {

namespace asio = boost::asio;

constexpr size_t kChunksPerReplica = 2;
// A step of a small model takes some milliseconds: more often would find the queue as it was.
constexpr std::chrono::milliseconds kRoomInterval(10);

}  // namespace

/// What the senders of one request share. All of them run on one strand.
struct ChunkSender::Progress {
  std::span<const ChunkRange> ranges;
  Gatherer& gatherer;
  size_t next_range = 0;
  size_t senders_left = 0;
  Status error;
  std::shared_ptr<Resumption> ended;
};

ChunkSender::ChunkSender(ReplicaPool& pool, const EncodeRequest& request,
                         std::vector<text::TokenSequence> sequences, const Clock& clock,
                         const Timers& timers)
    : pool_(pool),
      request_(request),
      sequences_(std::move(sequences)),
      clock_(clock),
      timers_(timers) {}

asio::awaitable<Status> ChunkSender::Send(std::span<const ChunkRange> ranges, Gatherer& gatherer) {
  if (ranges.size() == 1) {
    co_return co_await SendWhole(ranges.front(), gatherer);
  }
  Progress progress{ranges, gatherer, 0, 0, {}, std::make_shared<Resumption>()};
  const size_t num_senders =
      std::min(ranges.size(), kChunksPerReplica * std::max<size_t>(pool_.num_replicas(), 1));
  progress.senders_left = num_senders;
  const auto executor = co_await asio::this_coro::executor;
  const auto strand = asio::make_strand(executor);
  for (size_t i = 0; i < num_senders; ++i) {
    asio::co_spawn(strand, SendInTurn(progress), [&progress](const std::exception_ptr& exception) {
      if (exception != nullptr && progress.error.ok()) {
        progress.error = Internal("sending a chunk failed unexpectedly");
      }
      if (--progress.senders_left == 0) {
        const std::shared_ptr<Resumption> ended = progress.ended;
        ended->Resume();  // `progress` may be gone from here on
      }
    });
  }
  co_await Resumption::Wait(progress.ended, Deadline::None());
  co_return std::move(progress.error);
}

asio::awaitable<Status> ChunkSender::SendWhole(const ChunkRange& range, Gatherer& gatherer) {
  Result<ChunkRows> rows = co_await pool_.Submit(MakeChunk(std::move(sequences_)));
  if (!rows.ok()) {
    co_return std::move(rows).status();
  }
  co_return gatherer.Add(range, std::move(rows).value());
}

asio::awaitable<void> ChunkSender::SendInTurn(Progress& progress) {
  while (progress.error.ok() && progress.next_range < progress.ranges.size()) {
    const size_t index = progress.next_range++;
    Result<ChunkRows> rows = co_await SubmitWhenThereIsRoom(progress, index);
    Status status = rows.ok()
                        ? progress.gatherer.Add(progress.ranges[index], std::move(rows).value())
                        : std::move(rows).status();
    if (!status.ok() && progress.error.ok()) {
      progress.error = std::move(status);
      request_.cancelled.request_stop();
    }
  }
}

asio::awaitable<Result<ChunkRows>> ChunkSender::SubmitWhenThereIsRoom(Progress& progress,
                                                                      size_t range_index) {
  const ChunkRange& range = progress.ranges[range_index];
  const auto first = sequences_.begin() + static_cast<ptrdiff_t>(range.first);
  for (;;) {
    // Copied: a chunk that was refused, or was lost with its replica, is sent again.
    std::vector<text::TokenSequence> tokens(first, first + static_cast<ptrdiff_t>(range.count));
    Result<ChunkRows> rows = co_await pool_.Submit(MakeChunk(std::move(tokens)));
    const bool full = rows.code() == StatusCode::kResourceExhausted;
    if (!full || range_index == 0 || !progress.error.ok()) {
      co_return rows;
    }
    co_await Resumption::Wait(std::make_shared<Resumption>(),
                              Deadline::After(clock_.Now(), kRoomInterval), timers_);
    if (!progress.error.ok()) {
      co_return progress.error;
    }
    if (request_.cancelled.stop_requested()) {
      co_return Cancelled("cancelled before the queue");
    }
    if (request_.deadline.HasPassed(clock_.Now())) {
      co_return DeadlineExceeded("deadline passed before the queue");
    }
  }
}

Chunk ChunkSender::MakeChunk(std::vector<text::TokenSequence> sequences) const {
  Chunk chunk;
  chunk.sequences = std::move(sequences);
  chunk.output = request_.output;
  chunk.traffic_class = request_.traffic_class;
  chunk.deadline = request_.deadline;
  chunk.request_id = request_.request_id;
  chunk.trace = request_.trace;
  chunk.cancelled = request_.cancelled.get_token();
  return chunk;
}

}  // namespace bouquet::ivy
