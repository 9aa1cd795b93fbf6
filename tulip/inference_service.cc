#include "tulip/inference_service.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

#include "tulip/message.h"

namespace bouquet::tulip {
namespace {

uint64_t QueuedTokens(const Core& core) {
  const CoreLoad load = core.Load();
  return static_cast<uint64_t>(load.queued_tokens + load.under_way_tokens);
}

void EchoMetadata(grpc::CallbackServerContext& context) {
  for (const char* key : {"x-request-id", "traceparent"}) {
    const auto found = context.client_metadata().find(key);
    if (found != context.client_metadata().end()) {
      context.AddTrailingMetadata(key, {found->second.data(), found->second.size()});
    }
  }
}

/// The call's deadline on the steady clock.
Deadline DeadlineOf(const grpc::CallbackServerContext& context, TimePoint now) {
  const auto at = context.deadline();
  if (at == std::chrono::system_clock::time_point::max()) {
    return Deadline::None();
  }
  return Deadline::After(now, at - std::chrono::system_clock::now());
}

}  // namespace

/// One Encode under way. gRPC owns it until OnDone; the queue holds only its reply slot.
class InferenceService::EncodeCall final : public grpc::ServerUnaryReactor {
 public:
  EncodeCall(grpc::CallbackServerContext& context, v1::EncodeResponse& response)
      : context_(context), response_(response) {}

  void Refuse(const Status& status, uint64_t queued_tokens) {
    EchoMetadata(context_);
    Finish(ToGrpc(status, queued_tokens));
  }

  void Start(const v1::EncodeRequest& request, Core& core, TimePoint now) {
    if (const Status status = core.CheckIdentity(request.identity()); !status.ok()) {
      return Refuse(status, QueuedTokens(core));
    }
    Result<std::vector<Sequence>> sequences = ReadSequences(request);
    if (!sequences.ok()) {
      return Refuse(sequences.status(), QueuedTokens(core));
    }
    const Deadline deadline = DeadlineOf(context_, now);
    for (Sequence& sequence : *sequences) {
      sequence.deadline = deadline;
    }
    const auto reply = std::make_shared<Reply>(cancelled_.get_token(), *this, core);
    // Once it is accepted this may be gone at any moment.
    const Status status = core.Submit(std::move(sequences).value(), reply);
    if (!status.ok()) {
      Refuse(status, QueuedTokens(core));
    }
  }

  void OnCancel() override { cancelled_.request_stop(); }
  void OnDone() override { delete this; }
  // Both reactions are trivial: without this gRPC hands each to a thread of its executor.
  bool InternalInlineable() override { return true; }

 private:
  class Reply final : public ChunkReply {
   public:
    Reply(std::stop_token cancelled, EncodeCall& call, const Core& core)
        : ChunkReply(std::move(cancelled)), call_(call), core_(core) {}

   protected:
    /// Serialises on the completer's thread: a memcpy of rows, then gRPC's own threads send.
    void OnComplete() override { call_.Answer(*this, QueuedTokens(core_)); }

   private:
    EncodeCall& call_;
    const Core& core_;
  };

  void Answer(ChunkReply& reply, uint64_t queued_tokens) {
    WriteResponse(reply, queued_tokens, response_);
    EchoMetadata(context_);
    Finish(grpc::Status::OK);
  }

  grpc::CallbackServerContext& context_;
  v1::EncodeResponse& response_;
  std::stop_source cancelled_;
};

InferenceService::InferenceService(std::string model_name, std::string software_version,
                                   int64_t max_message_bytes, const Clock& clock)
    : model_name_(std::move(model_name)),
      software_version_(std::move(software_version)),
      max_message_bytes_(max_message_bytes),
      clock_(clock) {}

void InferenceService::SetCore(Core& core) { core_.store(&core); }

void InferenceService::SetDraining() { draining_.store(true); }

v1::ReplicaState InferenceService::state() const {
  const Core* core = core_.load();
  if (draining_.load()) {
    return v1::REPLICA_STATE_DRAINING;
  }
  if (core == nullptr) {
    return v1::REPLICA_STATE_LOADING;
  }
  const CoreLoad load = core->Load();
  if (!load.accepting) {
    return v1::REPLICA_STATE_DRAINING;
  }
  return load.overdue ? v1::REPLICA_STATE_STALLED : v1::REPLICA_STATE_SERVING;
}

Status InferenceService::CheckServing(const std::string& model) const {
  if (!model.empty() && model != model_name_) {
    return NotFound(
        fmt::format("the model is not served here: {}, expected {}", model, model_name_), "model");
  }
  if (draining_.load()) {
    return Unavailable("the server is stopping").WithRetryAfter(1);
  }
  if (core_.load() == nullptr) {
    return Unavailable("the model is loading").WithRetryAfter(1);
  }
  return {};
}

grpc::ServerUnaryReactor* InferenceService::Encode(grpc::CallbackServerContext* context,
                                                   const v1::EncodeRequest* request,
                                                   v1::EncodeResponse* response) {
  auto* call = new EncodeCall(*context, *response);  // deletes itself in OnDone
  if (const Status status = CheckServing(request->model()); !status.ok()) {
    call->Refuse(status, 0);
  } else {
    call->Start(*request, *core_.load(), clock_.Now());
  }
  return call;
}

grpc::ServerUnaryReactor* InferenceService::Describe(grpc::CallbackServerContext* context,
                                                     const v1::DescribeRequest* request,
                                                     v1::ModelDescription* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  EchoMetadata(*context);
  if (!request->model().empty() && request->model() != model_name_) {
    reactor->Finish(ToGrpc(CheckServing(request->model()), 0));
    return reactor;
  }
  response->set_model(model_name_);
  response->set_software_version(software_version_);
  response->set_max_message_bytes(static_cast<uint64_t>(max_message_bytes_));
  if (const Core* core = core_.load(); core != nullptr) {
    WriteDescription(core->Describe(), *response);
    const CoreLoad load = core->Load();
    response->set_queued_tokens(QueuedTokens(*core));
    response->set_tokens_per_second(load.tokens_per_second);
  }
  response->set_state(state());
  switch (response->state()) {
    case v1::REPLICA_STATE_LOADING: response->set_reason("the model is loading"); break;
    case v1::REPLICA_STATE_DRAINING: response->set_reason("the server is stopping"); break;
    case v1::REPLICA_STATE_STALLED: response->set_reason("a step of the engine is overdue"); break;
    default: break;
  }
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace bouquet::tulip
