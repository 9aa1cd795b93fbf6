#include "ivy/dispatch/grpc_replica.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/log.h"
#include "ivy/dispatch/grpc_message.h"
#include "ivy/dispatch/resumption.h"
#include "proto/tulip/v1/inference.grpc.pb.h"

namespace bouquet::ivy {
namespace {

// Rows of the largest chunk at the widest model, with room to spare.
constexpr int kMaxResponseBytes = 512 << 20;
// A stopped process keeps its connection: only a ping finds out.
constexpr int kPingIntervalMs = 1000;
constexpr int kPingTimeoutMs = 2000;
constexpr int kReconnectFirstMs = 100;
constexpr int kReconnectLongestMs = 2000;

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxResponseBytes);
  arguments.SetMaxSendMessageSize(-1);  // Tulip says what is too large, with its limit
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectLongestMs);
  // A connection of its own, even where two replicas are given the same address.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

int64_t CountTokens(const Chunk& chunk) {
  int64_t total = 0;
  for (const text::TokenSequence& sequence : chunk.sequences) {
    total += static_cast<int64_t>(sequence.ids.size());
  }
  return total;
}

}  // namespace

struct GrpcReplica::Connection {
  explicit Connection(const std::string& address)
      : stub(v1::Inference::NewStub(OpenChannel(address))) {}
  const std::unique_ptr<v1::Inference::Stub> stub;
};

/// One Encode under way, shared by the coroutine that waits and by gRPC.
struct GrpcReplica::Call final : public Resumption {
  grpc::ClientContext context;
  v1::EncodeRequest request;
  v1::EncodeResponse response;
  grpc::Status status;
  int64_t num_tokens = 0;
  std::atomic<bool> ended = false;  // from then on status and response may be read
};

GrpcReplica::GrpcReplica(GrpcReplicaOptions options, Admit admit, const Clock& clock)
    : options_(std::move(options)),
      admit_(std::move(admit)),
      clock_(clock),
      connection_(std::make_unique<Connection>(options_.address)) {
  load_.reason_unready = fmt::format("{} has not been reached yet", options_.address);
  probing_ = std::thread([this] { ProbeRegularly(); });
}

GrpcReplica::~GrpcReplica() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  probing_.join();
  NoteUnusable("the gateway lets it go", /*lost=*/true);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return calls_.empty(); });
}

std::optional<ReplicaDescription> GrpcReplica::Describe() const {
  const std::lock_guard lock(mutex_);
  return description_;
}

ReplicaLoad GrpcReplica::Load() const {
  const std::lock_guard lock(mutex_);
  ReplicaLoad load = load_;
  load.queued_tokens += own_tokens_;
  return load;
}

boost::asio::awaitable<Result<ChunkRows>> GrpcReplica::Submit(Chunk chunk) {
  auto call = std::make_shared<Call>();
  WriteRequest(chunk, call->request);
  call->num_tokens = CountTokens(chunk);
  if (!chunk.request_id.empty()) {
    call->context.AddMetadata("x-request-id", chunk.request_id);
  }
  Start(call, chunk.deadline);
  {
    const std::stop_callback on_cancel(chunk.cancelled, [call] { call->context.TryCancel(); });
    co_await Resumption::Wait(call, chunk.deadline);
  }
  if (!call->ended.load(std::memory_order_acquire)) {
    call->context.TryCancel();  // gRPC ends it later, and nobody looks at it
    co_return DeadlineExceeded("deadline passed at the replica");
  }
  if (!call->status.ok()) {
    co_return ErrorOf(*call, chunk.cancelled.stop_requested());
  }
  co_return ReadRows(call->response, chunk.sequences.size());
}

void GrpcReplica::Start(const std::shared_ptr<Call>& call, const Deadline& deadline) {
  if (deadline.at != TimePoint::max()) {
    call->context.set_deadline(std::chrono::system_clock::now() + (deadline.at - clock_.Now()));
  }
  {
    const std::lock_guard lock(mutex_);
    calls_.insert(call);
    own_tokens_ += call->num_tokens;
  }
  connection_->stub->async()->Encode(&call->context, &call->request, &call->response,
                                     [this, call](grpc::Status status) {
                                       call->status = std::move(status);
                                       NoteAnswer(*call);
                                       call->ended.store(true, std::memory_order_release);
                                       call->Resume();
                                       Forget(call);  // from here on this may be gone
                                     });
}

void GrpcReplica::NoteAnswer(const Call& call) {
  const std::lock_guard lock(mutex_);
  own_tokens_ -= call.num_tokens;
  if (call.status.ok()) {
    NoteQueue(static_cast<int64_t>(call.response.queued_tokens()));
  }
}

/// What is in the replica's queue besides our own work is the work of others.
void GrpcReplica::NoteQueue(int64_t reported_tokens) {
  load_.queued_tokens = std::max<int64_t>(0, reported_tokens - own_tokens_);
}

void GrpcReplica::Forget(const std::shared_ptr<Call>& call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
  if (stopping_) {  // else only the probing thread would wake up, once a call and for nothing
    changed_.notify_all();
  }
}

Status GrpcReplica::ErrorOf(const Call& call, bool cancelled) {
  ReadStatus read = ReadGrpcStatus(call.status);
  if (cancelled) {
    return Cancelled("cancelled at the replica");
  }
  if (read.from_server) {
    if (read.status.code() == StatusCode::kUnavailable) {
      MarkUnready(read.status.message());  // it stops, or loads: the next probe says more
    }
    return std::move(read.status);
  }
  switch (read.status.code()) {
    case StatusCode::kDeadlineExceeded: return DeadlineExceeded("deadline passed at the replica");
    case StatusCode::kUnavailable:
    case StatusCode::kCancelled:  // by CancelCalls, or by a server that went away
      MarkUnready(read.status.message());
      return Unavailable(
                 fmt::format("replica {} was lost: {}", options_.address, read.status.message()))
          .WithRetryAfter(1);
    default:
      return Internal(fmt::format("replica {} could not be asked: {}", options_.address,
                                  read.status.ToString()));
  }
}

/// No further work until the next probe, which comes at once.
void GrpcReplica::MarkUnready(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (load_.ready) {
    LogWarning("replica {} is not ready: {}", options_.address, reason);
  }
  load_.ready = false;
  load_.reason_unready = fmt::format("{}: {}", options_.address, reason);
  probe_now_ = true;
  changed_.notify_all();
}

void GrpcReplica::ProbeRegularly() {
  ProbeSchedule schedule(options_.probe);
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0, 1);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    probe_now_ = false;
    lock.unlock();
    const bool answered = Probe();
    lock.lock();
    const auto wait = answered ? schedule.AfterAnswer() : schedule.AfterFailure(jitter(random));
    changed_.wait_for(lock, wait, [this] { return stopping_ || probe_now_; });
  }
}

/// False when the replica cannot be used.
bool GrpcReplica::Probe() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options_.probe_timeout);
  v1::ModelDescription description;
  const grpc::Status status = connection_->stub->Describe(&context, {}, &description);
  if (!status.ok()) {
    NoteUnusable(status.error_message(), /*lost=*/true);
    return false;
  }
  if (description.state() != v1::REPLICA_STATE_SERVING) {
    NoteUnusable(description.reason(), description.state() == v1::REPLICA_STATE_STALLED);
    return false;
  }
  return NoteServing(ReadDescription(description),
                     static_cast<int64_t>(description.queued_tokens()),
                     description.tokens_per_second());
}

bool GrpcReplica::NoteServing(ReplicaDescription description, int64_t reported_tokens,
                              double tokens_per_second) {
  std::optional<Status> verdict;
  if (description != Describe()) {
    verdict = admit_(description);
    if (verdict->ok()) {
      LogInfo("replica {} serves {}: {}, {}", options_.address, description.model_name,
              description.device_description, description.dtype);
    } else {
      LogError("replica {} gets no work: {}", options_.address, verdict->message());
    }
  }
  const bool is_new = verdict.has_value();
  const std::lock_guard lock(mutex_);
  if (is_new) {
    description_ = std::move(description);
    verdict_ = *std::move(verdict);
  }
  asked_ = true;
  NoteQueue(reported_tokens);
  load_.tokens_per_second = tokens_per_second;
  if (!load_.ready && verdict_.ok() && !is_new) {
    LogInfo("replica {} is ready again", options_.address);
  }
  load_.ready = verdict_.ok();
  load_.reason_unready =
      verdict_.ok() ? "" : fmt::format("{}: {}", options_.address, verdict_.message());
  return verdict_.ok();
}

void GrpcReplica::NoteUnusable(const std::string& reason, bool lost) {
  std::vector<std::shared_ptr<Call>> lost_calls;
  {
    const std::lock_guard lock(mutex_);
    if ((load_.ready || !asked_) && !stopping_) {
      LogWarning("replica {} is not ready: {}", options_.address, reason);
    }
    asked_ = true;
    load_.ready = false;
    load_.reason_unready = fmt::format("{}: {}", options_.address, reason);
    load_.queued_tokens = 0;
    if (lost) {
      lost_calls.assign(calls_.begin(), calls_.end());
    }
  }
  for (const std::shared_ptr<Call>& call : lost_calls) {
    call->context.TryCancel();
  }
}

}  // namespace bouquet::ivy
