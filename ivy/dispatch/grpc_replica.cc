#include "ivy/dispatch/grpc_replica.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <stop_token>
#include <utility>
#include <vector>

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
  int32_t longest_input = 0;  // in tokens
  bool within_limits = false;
  std::atomic<bool> ended = false;  // from then on status and response may be read
};

GrpcReplica::GrpcReplica(GrpcReplicaOptions options, Admit admit, Metrics& metrics,
                         const Clock& clock)
    : options_(std::move(options)),
      admit_(std::move(admit)),
      clock_(clock),
      connection_(std::make_unique<Connection>(options_.address)),
      ready_(metrics.AddGauge("bouquet_replica_ready", "1: the inference server gets work",
                              {{"replica", options_.address}})),
      queued_tokens_(metrics.AddGauge("bouquet_replica_queued_tokens",
                                      "Tokens that wait or are computed there, as far as is known",
                                      {{"replica", options_.address}})),
      ledger_(options_.address, options_.probe) {
  probing_ = std::thread([this] { ProbeRegularly(); });
}

GrpcReplica::~GrpcReplica() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  probing_.join();
  {
    const std::lock_guard lock(mutex_);
    ledger_.Retire();
  }
  CancelCalls();
  calls_.WaitUntilNone();
}

std::optional<ReplicaDescription> GrpcReplica::Describe() const {
  const std::lock_guard lock(mutex_);
  return ledger_.description();
}

ReplicaLoad GrpcReplica::Load() const {
  const std::lock_guard lock(mutex_);
  return ledger_.Load();
}

boost::asio::awaitable<Result<ChunkRows>> GrpcReplica::Submit(Chunk chunk) {
  const int64_t num_tokens = CountTokens(chunk);
  CO_RETURN_IF_ERROR(CheckRoom(num_tokens));
  auto call = std::make_shared<Call>();
  WriteRequest(chunk, call->request);
  call->num_tokens = num_tokens;
  for (const text::TokenSequence& sequence : chunk.sequences) {
    call->longest_input = std::max(call->longest_input, static_cast<int32_t>(sequence.ids.size()));
  }
  if (!chunk.request_id.empty()) {
    call->context.AddMetadata("x-request-id", chunk.request_id);
  }
  if (!chunk.trace.parent.empty()) {
    call->context.AddMetadata("traceparent", chunk.trace.parent);
    if (!chunk.trace.state.empty()) {
      call->context.AddMetadata("tracestate", chunk.trace.state);
    }
  }
  CO_RETURN_IF_ERROR(Start(call, chunk.deadline));
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

Status GrpcReplica::CheckRoom(int64_t num_tokens) const {
  const std::lock_guard lock(mutex_);
  return ledger_.CheckRoom(num_tokens);
}

Status GrpcReplica::Start(const std::shared_ptr<Call>& call, const Deadline& deadline) {
  if (deadline.at != TimePoint::max()) {
    call->context.set_deadline(std::chrono::system_clock::now() + (deadline.at - clock_.Now()));
  }
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(ledger_.CheckAdmitted());
    call->request.set_identity(std::string(ledger_.identity()));
    call->within_limits = ledger_.Admits(call->longest_input);
    ledger_.NoteSent(call->num_tokens);
    PublishLoad();
  }
  calls_.Add(call);
  connection_->stub->async()->Encode(&call->context, &call->request, &call->response,
                                     [this, call = call.get()](grpc::Status status) {
                                       call->status = std::move(status);
                                       NoteAnswer(*call);
                                       call->ended.store(true, std::memory_order_release);
                                       call->Resume();
                                       calls_.End(call);  // from here on this may be gone
                                     });
  return {};
}

void GrpcReplica::NoteAnswer(const Call& call) {
  const std::lock_guard lock(mutex_);
  std::optional<int64_t> queued_tokens;
  if (call.status.ok()) {
    queued_tokens = static_cast<int64_t>(call.response.queued_tokens());
  }
  ledger_.NoteEnded(call.num_tokens, queued_tokens);
  PublishLoad();
}

void GrpcReplica::PublishLoad() {
  const ReplicaLoad load = ledger_.Load();
  ready_.Set(load.ready ? 1 : 0);
  queued_tokens_.Set(static_cast<double>(load.queued_tokens));
}

Status GrpcReplica::ErrorOf(const Call& call, bool cancelled) {
  ReadStatus read = ReadGrpcStatus(call.status);
  const std::lock_guard lock(mutex_);
  Status error = ledger_.NoteError(
      {std::move(read.status), read.from_server, cancelled, call.within_limits, call.num_tokens});
  PublishLoad();
  if (ledger_.probe_now()) {
    changed_.notify_all();
  }
  return error;
}

void GrpcReplica::ProbeRegularly() {
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0, 1);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    ledger_.BeginProbe();
    lock.unlock();
    calls_.DropEnded();
    Learn(Probe());
    lock.lock();
    changed_.wait_for(lock, ledger_.UntilNextProbe(jitter(random)),
                      [this] { return stopping_ || ledger_.probe_now(); });
  }
}

ReplicaLedger::ProbeAnswer GrpcReplica::Probe() {
  using State = ReplicaLedger::ProbeAnswer::State;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options_.probe_timeout);
  v1::ModelDescription description;
  const grpc::Status status = connection_->stub->Describe(&context, {}, &description);
  ReplicaLedger::ProbeAnswer answer;
  if (!status.ok()) {
    answer.reason = status.error_message();
    return answer;
  }
  switch (description.state()) {
    case v1::REPLICA_STATE_SERVING: answer.state = State::kServing; break;
    case v1::REPLICA_STATE_STALLED: answer.state = State::kStalled; break;
    default: answer.state = State::kNotServing;
  }
  answer.reason = description.reason();
  answer.description = ReadDescription(description);
  answer.queued_tokens = static_cast<int64_t>(description.queued_tokens());
  answer.tokens_per_second = description.tokens_per_second();
  return answer;
}

void GrpcReplica::Learn(ReplicaLedger::ProbeAnswer answer) {
  std::optional<Status> verdict;
  if (answer.state == ReplicaLedger::ProbeAnswer::State::kServing) {
    bool is_new = false;
    {
      const std::lock_guard lock(mutex_);
      is_new = ledger_.IsNew(answer.description);
    }
    if (is_new) {
      verdict = admit_(answer.description);  // without the lock: the pool may ask for our load
    }
  }
  bool calls_are_lost = false;
  {
    const std::lock_guard lock(mutex_);
    calls_are_lost = ledger_.NoteProbe(std::move(answer), std::move(verdict));
    PublishLoad();
  }
  if (calls_are_lost) {
    CancelCalls();
  }
}

void GrpcReplica::CancelCalls() {
  for (const std::shared_ptr<Call>& call : calls_.List()) {
    call->context.TryCancel();
  }
}

}  // namespace bouquet::ivy
