// The gRPC client against a server of the protocol that answers what the test wants.
#include "client/grpc_embed_client.h"

#include <grpcpp/grpcpp.h>

#include <array>
#include <functional>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "proto/tulip/v1/inference.grpc.pb.h"

namespace bouquet::client {
namespace {

namespace asio = boost::asio;
namespace v1 = ::tulip::v1;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeInference final : public v1::Inference::Service {
 public:
  using EncodeFunction = std::function<grpc::Status(grpc::ServerContext&, const v1::EncodeRequest&,
                                                    v1::EncodeResponse&)>;
  EncodeFunction encode;
  v1::ModelDescription description;

  grpc::Status Encode(grpc::ServerContext* context, const v1::EncodeRequest* request,
                      v1::EncodeResponse* response) override {
    return encode(*context, *request, *response);
  }
  grpc::Status Describe(grpc::ServerContext* /*context*/, const v1::DescribeRequest* /*request*/,
                        v1::ModelDescription* response) override {
    *response = description;
    return grpc::Status::OK;
  }
};

/// Each sequence's row is its number of ids and its first id.
grpc::Status LengthAndFirst(grpc::ServerContext& /*context*/, const v1::EncodeRequest& request,
                            v1::EncodeResponse& response) {
  v1::RowBlock& block = *response.add_blocks();
  block.set_dtype(v1::ROW_DTYPE_FLOAT32);
  block.set_width(2);
  for (int i = 0; i + 1 < request.sequence_offsets_size(); ++i) {
    const uint32_t begin = request.sequence_offsets(i);
    const std::array<float, 2> row{static_cast<float>(request.sequence_offsets(i + 1) - begin),
                                   static_cast<float>(request.token_ids(static_cast<int>(begin)))};
    block.mutable_data()->append(reinterpret_cast<const char*>(row.data()), sizeof(row));
  }
  return grpc::Status::OK;
}

class GrpcEmbedClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    service_.encode = LengthAndFirst;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    options_.url = {.scheme = Url::Scheme::kGrpc,
                    .host = "127.0.0.1",
                    .port = std::to_string(port_),
                    .path = {}};
  }
  void TearDown() override { server_->Shutdown(std::chrono::system_clock::now()); }

  /// Runs what the client is asked for on this thread.
  template <class T>
  T Ask(const std::function<asio::awaitable<T>(EmbedClient&)>& question) {
    asio::io_context context(1);
    auto client = CreateEmbedClient(context.get_executor(), options_);
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    std::vector<T> answers;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
          T answer = co_await question(**client);
          answers.push_back(std::move(answer));
        },
        [](const std::exception_ptr& error) { EXPECT_EQ(error, nullptr); });
    context.run();
    return std::move(answers.at(0));
  }

  EmbedReply Embed(const std::vector<EmbedInput>& inputs) {
    const PreparedRequest request = PrepareRequest(options_, inputs);
    return Ask<EmbedReply>([&](EmbedClient& client) { return client.Embed(request); });
  }

  FakeInference service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  ClientOptions options_;
};

const std::vector<EmbedInput> kTwoSequences{std::vector<int32_t>{7, 8, 9},
                                            std::vector<int32_t>{30'000}};

TEST_F(GrpcEmbedClientTest, GetsARowPerSequence) {
  EXPECT_TRUE(Ask<Status>([](EmbedClient& client) { return client.Connect(1); }).ok());
  const EmbedReply reply = Embed(kTwoSequences);
  ASSERT_TRUE(reply.status.ok()) << reply.status.ToString();
  EXPECT_EQ(OutcomeName(reply), "ok");
  EXPECT_EQ(reply.rows.dimensions, 2U);
  EXPECT_THAT(reply.rows.values, ElementsAre(3, 7, 1, 30'000));
}

TEST_F(GrpcEmbedClientTest, TellsARefusalWithItsRetryAfter) {
  service_.encode = [](auto&, auto&, auto&) {
    v1::ErrorDetail detail;
    detail.set_retry_after_s(2);
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", detail.SerializeAsString());
  };
  const EmbedReply reply = Embed(kTwoSequences);
  EXPECT_EQ(OutcomeName(reply), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(reply.status.message(), "full");
  EXPECT_TRUE(reply.has_retry_after);
  EXPECT_EQ(reply.status.retry_after_seconds(), 2);
}

TEST_F(GrpcEmbedClientTest, FailsWhenOneSequenceFailed) {
  service_.encode = [](auto&, auto&, v1::EncodeResponse& response) {
    response.add_statuses();
    v1::SequenceStatus& second = *response.add_statuses();
    second.set_code(static_cast<uint32_t>(StatusCode::kInvalidArgument));
    second.set_message("id out of range");
    return grpc::Status::OK;
  };
  const EmbedReply reply = Embed(kTwoSequences);
  EXPECT_EQ(OutcomeName(reply), "INVALID_ARGUMENT");
  EXPECT_EQ(reply.status.message(), "id out of range");
}

TEST_F(GrpcEmbedClientTest, CallsAWrongNumberOfRowsMalformed) {
  service_.encode = [](grpc::ServerContext& context, const v1::EncodeRequest& request,
                       v1::EncodeResponse& response) {
    const grpc::Status status = LengthAndFirst(context, request, response);
    response.mutable_blocks(0)->mutable_data()->resize(8);
    return status;
  };
  const EmbedReply reply = Embed(kTwoSequences);
  EXPECT_EQ(OutcomeName(reply), "malformed");
  EXPECT_THAT(reply.status.message(), HasSubstr("8 bytes are not 2 rows of 2"));
}

TEST_F(GrpcEmbedClientTest, GivesUpAfterItsTimeLimit) {
  service_.encode = [](grpc::ServerContext& context, auto&, auto&) {
    while (!context.IsCancelled()) {
      std::this_thread::sleep_for(1ms);
    }
    return grpc::Status::CANCELLED;
  };
  options_.request_timeout = 30ms;
  EXPECT_EQ(OutcomeName(Embed(kTwoSequences)), "timeout");
}

TEST_F(GrpcEmbedClientTest, SaysWhenNobodyListens) {
  server_->Shutdown(std::chrono::system_clock::now());
  options_.connect_timeout = 50ms;
  EXPECT_EQ(OutcomeName(Embed(kTwoSequences)), "connect");
  EXPECT_EQ(Ask<Status>([](EmbedClient& client) { return client.Connect(1); }).code(),
            StatusCode::kUnavailable);
}

TEST_F(GrpcEmbedClientTest, DescribesTheServerInTheFormOfInfo) {
  service_.description.set_model("m");
  service_.description.set_max_input_tokens(256);
  service_.description.set_vocabulary_rows(30'522);
  service_.description.set_reason("loading weights");
  const auto fetch = [](EmbedClient& client) { return client.Fetch("/info"); };
  const auto loading = Ask<Result<std::string>>(fetch);
  EXPECT_EQ(loading.code(), StatusCode::kUnavailable);
  EXPECT_THAT(loading.status().message(), HasSubstr("loading weights"));
  service_.description.set_state(v1::REPLICA_STATE_SERVING);
  const auto info = Ask<Result<std::string>>(fetch);
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_THAT(*info, HasSubstr("\"model_id\":\"m\""));
  EXPECT_THAT(*info, HasSubstr("\"max_input_length\":256"));
  EXPECT_THAT(*info, HasSubstr("\"vocabulary_rows\":30522"));
  EXPECT_EQ(Ask<Result<std::string>>([](EmbedClient& client) {
              return client.Fetch("/v1/models");
            }).code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace bouquet::client
