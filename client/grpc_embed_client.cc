#include "client/grpc_embed_client.h"

#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/calls_under_way.h"
#include "base/json.h"
#include "proto/tulip/v1/inference.grpc.pb.h"

namespace bouquet::client {
namespace {

namespace asio = boost::asio;
namespace v1 = ::tulip::v1;

constexpr const char* kEncodeMethod = "/tulip.v1.Inference/Encode";

/// A request under way, shared by the coroutine that waits and by gRPC.
struct Call : std::enable_shared_from_this<Call> {
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
  grpc::Status status;
  TimePoint received;
  // On the executor's thread only:
  asio::steady_timer* waiting = nullptr;
  bool ended = false;
};

std::chrono::system_clock::time_point After(std::chrono::milliseconds wait) {
  return std::chrono::system_clock::now() + wait;
}

Status Malformed(std::string message) {
  return Internal("the answer is not what was asked for: " + std::move(message));
}

Result<EmbedRows> ReadRows(grpc::ByteBuffer& buffer, size_t num_inputs) {
  v1::EncodeResponse response;
  if (!grpc::SerializationTraits<v1::EncodeResponse>::Deserialize(&buffer, &response).ok()) {
    return Malformed("it is no EncodeResponse");
  }
  for (const v1::SequenceStatus& status : response.statuses()) {
    if (status.code() != 0) {
      return Status(static_cast<StatusCode>(status.code()), status.message());
    }
  }
  if (response.blocks_size() != 1) {
    return Malformed(fmt::format("{} blocks, one was asked for", response.blocks_size()));
  }
  const v1::RowBlock& block = response.blocks(0);
  EmbedRows rows;
  rows.dimensions = block.width();
  if (rows.dimensions == 0 || block.dtype() > v1::ROW_DTYPE_FLOAT32 ||
      block.data().size() != num_inputs * rows.dimensions * sizeof(float)) {
    return Malformed(fmt::format("{} bytes are not {} rows of {} float32", block.data().size(),
                                 num_inputs, rows.dimensions));
  }
  rows.values.resize(num_inputs * rows.dimensions);
  std::memcpy(rows.values.data(), block.data().data(), block.data().size());
  return rows;
}

void FillFailure(const grpc::Status& status, EmbedReply& reply) {
  const bool from_server = !status.error_details().empty();
  v1::ErrorDetail detail;
  if (from_server && detail.ParseFromString(status.error_details())) {
    reply.has_retry_after = detail.retry_after_s() > 0;
  }
  reply.status = Status(static_cast<StatusCode>(status.error_code()), status.error_message())
                     .WithRetryAfter(static_cast<int32_t>(detail.retry_after_s()));
  reply.failure = Failure::kStatus;
  if (!from_server && status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    reply.failure = Failure::kConnect;
  } else if (!from_server && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    reply.failure = Failure::kTimeout;
  }
}

/// In the form of /info, as far as both say the same.
std::string DescriptionAsInfo(const v1::ModelDescription& description) {
  std::string json = "{\"model_id\":";
  AppendJsonString(description.model(), json);
  json += ",\"version\":";
  AppendJsonString(description.software_version(), json);
  json += ",\"model_dtype\":";
  AppendJsonString(description.dtype(), json);
  json += ",\"device\":";
  AppendJsonString(description.device_description(), json);
  fmt::format_to(std::back_inserter(json),
                 ",\"max_input_length\":{},\"max_batch_tokens\":{},\"bouquet\":{{\"models\":"
                 "[{{\"vocabulary_rows\":{},\"dimensions\":{}}}]}}}}",
                 description.max_input_tokens(), description.step_tokens(),
                 description.vocabulary_rows(), description.width());
  return json;
}

class GrpcEmbedClient final : public EmbedClient {
 public:
  GrpcEmbedClient(const asio::any_io_executor& executor, ClientOptions options)
      : executor_(executor), options_(std::move(options)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(options_.max_answer_bytes));
    arguments.SetMaxSendMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(options_.url.Authority(),
                                         grpc::InsecureChannelCredentials(), arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }
  ~GrpcEmbedClient() override {
    for (const std::shared_ptr<Call>& call : calls_.List()) {
      call->context.TryCancel();
    }
    calls_.WaitUntilNone();
  }
  GrpcEmbedClient(const GrpcEmbedClient&) = delete;
  GrpcEmbedClient& operator=(const GrpcEmbedClient&) = delete;

  asio::awaitable<Status> Connect(size_t /*count*/) override {
    if (!channel_->WaitForConnected(After(options_.connect_timeout))) {
      co_return Unavailable(
          fmt::format("cannot connect to {}: no answer in time", options_.url.Authority()));
    }
    co_return Status();
  }

  asio::awaitable<EmbedReply> Embed(const PreparedRequest& request) override {
    const auto call = std::make_shared<Call>();
    asio::steady_timer ended(executor_, asio::steady_timer::time_point::max());
    call->waiting = &ended;
    call->context.set_deadline(After(options_.request_timeout));
    const grpc::Slice bytes(request.bytes.data(), request.bytes.size(), grpc::Slice::STATIC_SLICE);
    call->request = grpc::ByteBuffer(&bytes, 1);
    Start(call);
    while (!call->ended) {
      co_await ended.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    EmbedReply reply;
    reply.received = call->received;
    if (!call->status.ok()) {
      FillFailure(call->status, reply);
      co_return reply;
    }
    Result<EmbedRows> rows = ReadRows(call->response, request.num_inputs);
    if (rows.ok()) {
      reply.rows = std::move(rows).value();
    } else {
      reply.failure = rows.code() == StatusCode::kInternal ? Failure::kMalformed : Failure::kStatus;
      reply.status = rows.status();
    }
    co_return reply;
  }

  asio::awaitable<Result<std::string>> Fetch(std::string path) override {
    if (path != "/info") {
      co_return NotFound("gRPC has no pages: " + path);
    }
    grpc::ClientContext context;
    context.set_deadline(After(options_.connect_timeout));
    v1::ModelDescription description;
    const grpc::Status status =
        v1::Inference::NewStub(channel_)->Describe(&context, {}, &description);
    if (!status.ok()) {
      co_return Status(
          static_cast<StatusCode>(status.error_code()),
          fmt::format("cannot ask {}: {}", options_.url.Authority(), status.error_message()));
    }
    if (description.state() != v1::REPLICA_STATE_SERVING) {
      co_return Unavailable("the server does not serve: " + description.reason());
    }
    co_return DescriptionAsInfo(description);
  }

 private:
  void Start(const std::shared_ptr<Call>& call) {
    calls_.Add(call);
    stub_->UnaryCall(&call->context, kEncodeMethod, grpc::StubOptions(), &call->request,
                     &call->response, [this, call = call.get()](grpc::Status status) {
                       call->received = SystemClock().Now();
                       call->status = std::move(status);
                       asio::post(executor_, [call = call->shared_from_this()] {
                         call->ended = true;
                         call->waiting->cancel();
                       });
                       calls_.End(call);
                     });
  }

  const asio::any_io_executor executor_;
  const ClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  CallsUnderWay<Call> calls_;
};

}  // namespace

Result<std::unique_ptr<EmbedClient>> CreateGrpcEmbedClient(const asio::any_io_executor& executor,
                                                           ClientOptions options) {
  return std::unique_ptr<EmbedClient>(
      std::make_unique<GrpcEmbedClient>(executor, std::move(options)));
}

std::string GrpcRequestBytes(const std::vector<EmbedInput>& inputs) {
  v1::EncodeRequest request;
  request.add_sequence_offsets(0);
  for (const EmbedInput& input : inputs) {
    const auto* ids = std::get_if<std::vector<int32_t>>(&input);
    CHECK(ids != nullptr);
    for (const int32_t id : *ids) {
      request.add_token_ids(static_cast<uint32_t>(id));
    }
    request.add_sequence_offsets(static_cast<uint32_t>(request.token_ids_size()));
  }
  request.add_outputs(v1::OUTPUT_DENSE);
  return request.SerializeAsString();
}

}  // namespace bouquet::client
