// The server as another client than Ivy meets it: the stub, the health service, reflection.
#include "tulip/server.h"

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "proto/tulip/v1/inference.grpc.pb.h"
#include "testing/eventually.h"
#include "testing/fake_step_engine.h"

namespace bouquet::tulip {
namespace {

namespace v1 = ::tulip::v1;
using std::chrono::milliseconds;
using testing::Eventually;
using testing::FakeRow;
using testing::FakeStepEngine;
using ::testing::HasSubstr;

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = std::make_unique<FakeStepEngine>();
    engine_ = engine.get();
    core_ = std::move(Core::Start(std::unique_ptr<StepEngine>(std::move(engine)),
                                  {.model_name = "fake",
                                   .identity = "identity-1",
                                   .step_tokens = 100,
                                   .max_batch_sequences = 64,
                                   .warm_up = {.budget = milliseconds(0)}},
                                  metrics_, clock_)
                          .value());
    auto server = Server::Start({.listen = {"127.0.0.1:0"},
                                 .model_name = "fake",
                                 .software_version = "1.2.3",
                                 .max_message_bytes = 4096},
                                clock_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->ports().front()),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::Inference::NewStub(channel_);
  }

  static v1::EncodeRequest OneSequence(uint32_t id) {
    v1::EncodeRequest request;
    request.add_token_ids(id);
    request.add_sequence_offsets(0);
    request.add_sequence_offsets(1);
    return request;
  }

  grpc::Status Encode(const v1::EncodeRequest& request, v1::EncodeResponse& response) {
    grpc::ClientContext context;
    return stub_->Encode(&context, request, &response);
  }

  /// The raw answer of grpc.health.v1.Health/Check: field 1 is the status, 1 is SERVING.
  std::string Health(const std::string& service) {
    std::string request;
    if (!service.empty()) {
      request.push_back('\x0a');  // field 1, of a length
      request.push_back(static_cast<char>(service.size()));
      request.append(service);
    }
    grpc::Slice slice(request);
    grpc::ByteBuffer message(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::ClientContext context;
    grpc::GenericStub stub(channel_);
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &message, &answer,
                   [&ended](grpc::Status status) { ended.set_value(std::move(status)); });
    const grpc::Status status = ended.get_future().get();
    if (!status.ok()) {
      return status.error_message();
    }
    std::vector<grpc::Slice> slices;
    (void)answer.Dump(&slices);
    std::string bytes;
    for (const grpc::Slice& part : slices) {
      bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    return bytes;
  }

  SystemClock clock_;
  Metrics metrics_;
  FakeStepEngine* engine_ = nullptr;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

constexpr const char* kServing = "\x08\x01";
constexpr const char* kNotServing = "\x08\x02";

TEST_F(ServerTest, IsHealthyOnceTheModelIsThereAndUntilItDrains) {
  EXPECT_EQ(Health(""), kNotServing);
  EXPECT_EQ(Health("tulip.v1.Inference"), kNotServing);
  EXPECT_FALSE(server_->IsServing());
  server_->SetReady(*core_);
  EXPECT_TRUE(Eventually([&] { return Health("") == kServing; }));
  EXPECT_TRUE(Eventually([&] { return Health("tulip.v1.Inference") == kServing; }));
  EXPECT_TRUE(server_->IsServing());
  server_->Drain(milliseconds(1000));
  EXPECT_FALSE(server_->IsServing());
}

TEST_F(ServerTest, DescribesItselfWhileLoadingAndAfter) {
  v1::ModelDescription description;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub_->Describe(&context, {}, &description).ok());
  }
  EXPECT_EQ(description.state(), v1::REPLICA_STATE_LOADING);
  EXPECT_EQ(description.model(), "fake");
  EXPECT_EQ(description.software_version(), "1.2.3");
  EXPECT_EQ(description.identity(), "");
  server_->SetReady(*core_);
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub_->Describe(&context, {}, &description).ok());
  }
  EXPECT_EQ(description.state(), v1::REPLICA_STATE_SERVING);
  EXPECT_EQ(description.identity(), "identity-1");
  EXPECT_EQ(description.max_message_bytes(), 4096U);
  EXPECT_EQ(description.outputs_size(), 1);
}

TEST_F(ServerTest, AnswersAndEchoesTheRequestId) {
  server_->SetReady(*core_);
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "abc");
  context.AddMetadata("traceparent", "00-1-2-01");
  v1::EncodeResponse response;
  const grpc::Status status = stub_->Encode(&context, OneSequence(3), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::vector<float> row = FakeRow(std::vector{3}, 8);
  EXPECT_EQ(response.blocks(0).data(),
            std::string(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)));
  const auto& trailers = context.GetServerTrailingMetadata();
  ASSERT_EQ(trailers.count("x-request-id"), 1U);
  EXPECT_EQ(trailers.find("x-request-id")->second, "abc");
  EXPECT_EQ(trailers.count("traceparent"), 1U);
}

TEST_F(ServerTest, CarriesSignBitsBesideFloatsAndRefusesOtherFormats) {
  server_->SetReady(*core_);
  v1::EncodeResponse response;
  v1::EncodeRequest request = OneSequence(3);
  request.set_output_dtype(v1::ROW_DTYPE_BITS_MSB);
  const grpc::Status status = Encode(request, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.blocks(0).dtype(), v1::ROW_DTYPE_BITS_MSB);
  EXPECT_EQ(response.blocks(0).width(), 8U);
  const std::vector<std::byte> bits = testing::FakeRowBytes(std::vector{3}, 1);
  EXPECT_EQ(response.blocks(0).data(), std::string(1, std::to_integer<char>(bits[0])));

  request.set_dimensions(4);
  const grpc::Status cut = Encode(request, response);
  EXPECT_EQ(cut.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(cut.error_message(), HasSubstr("multiple of 8: 4"));
  request.set_output_dtype(v1::ROW_DTYPE_INT8);
  EXPECT_EQ(Encode(request, response).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, RefusesWhatItCannotServeAndServesTheNext) {
  v1::EncodeResponse response;
  EXPECT_EQ(Encode(OneSequence(1), response).error_code(), grpc::StatusCode::UNAVAILABLE);
  server_->SetReady(*core_);
  EXPECT_EQ(Encode({}, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::EncodeRequest other = OneSequence(1);
  other.set_model("other");
  EXPECT_EQ(Encode(other, response).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::EncodeRequest meant_for_another = OneSequence(7);
  meant_for_another.set_identity("identity-2");
  const grpc::Status refused = Encode(meant_for_another, response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("identity identity-1, expected identity-2"));
  EXPECT_FALSE(engine_->HasComputed(7));
  meant_for_another.set_identity("identity-1");
  EXPECT_TRUE(Encode(meant_for_another, response).ok());
  const grpc::Status bad_id = Encode(OneSequence(4'000'000'000U), response);
  EXPECT_EQ(bad_id.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(bad_id.error_message(), HasSubstr("0..999"));
  v1::EncodeRequest large;
  for (uint32_t i = 0; i < 2000; ++i) {
    large.add_token_ids(1);
  }
  EXPECT_EQ(Encode(large, response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Encode(OneSequence(1), response).ok());
}

TEST_F(ServerTest, DropsWhatIsLateOrCancelledFromTheQueue) {
  server_->SetReady(*core_);
  engine_->Hold();
  const int64_t steps = engine_->num_steps();
  std::thread first([&] {
    v1::EncodeResponse response;
    EXPECT_TRUE(Encode(OneSequence(1), response).ok());
  });
  engine_->WaitForSteps(steps + 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(30));
  v1::EncodeResponse response;
  EXPECT_EQ(stub_->Encode(&context, OneSequence(2), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  std::this_thread::sleep_for(milliseconds(300));  // the server's own clock started a little later
  engine_->Release();
  first.join();
  EXPECT_TRUE(Encode(OneSequence(3), response).ok());
  EXPECT_FALSE(engine_->HasComputed(2));
}

TEST(ServerStartTest, SaysWhatIsWrongWithAnAddress) {
  const SystemClock clock;
  const auto start = [&clock](std::vector<std::string> listen) {
    return Server::Start({.listen = std::move(listen), .model_name = "fake"}, clock);
  };
  EXPECT_EQ(start({}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(start({"nonsense"}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(start({"127.0.0.1:x"}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(start({"127.0.0.1:99999"}).code(), StatusCode::kInvalidArgument);
  const auto taken = start({"127.0.0.1:0"});
  ASSERT_TRUE(taken.ok());
  const auto again = start({"127.0.0.1:" + std::to_string((*taken)->ports().front())});
  EXPECT_EQ(again.code(), StatusCode::kUnavailable);
  EXPECT_THAT(again.status().message(), HasSubstr("in use"));
}

}  // namespace
}  // namespace bouquet::tulip
