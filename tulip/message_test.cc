#include "tulip/message.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/waiting_reply.h"

namespace bouquet::tulip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two sequences: {5, 6, 7} and {8}.
v1::EncodeRequest TwoSequences() {
  v1::EncodeRequest request;
  for (const uint32_t id : {5, 6, 7, 8}) {
    request.add_token_ids(id);
  }
  for (const uint32_t offset : {0, 3, 4}) {
    request.add_sequence_offsets(offset);
  }
  return request;
}

TEST(ReadSequencesTest, CutsTheIdsAtTheOffsets) {
  v1::EncodeRequest request = TwoSequences();
  const char types[] = {0, 1, 1, 0};
  request.set_token_type_ids(types, sizeof(types));
  request.add_pooling_starts(2);
  request.add_pooling_starts(0);
  request.set_dimensions(16);
  request.set_normalize(false);
  request.set_traffic_class(v1::TRAFFIC_CLASS_BULK);
  const auto sequences = ReadSequences(request);
  ASSERT_TRUE(sequences.ok()) << sequences.status().ToString();
  ASSERT_EQ((*sequences).size(), 2U);
  const Sequence& first = (*sequences)[0];
  EXPECT_THAT(first.ids, ElementsAre(5, 6, 7));
  EXPECT_THAT(first.type_ids, ElementsAre(0, 1, 1));
  EXPECT_EQ(first.pooling_start, 2);
  EXPECT_EQ(first.output.dimensions, 16U);
  EXPECT_FALSE(first.output.normalize);
  EXPECT_EQ(first.traffic_class, model::TrafficClass::kBulk);
  EXPECT_THAT((*sequences)[1].ids, ElementsAre(8));
}

TEST(ReadSequencesTest, TakesWhatIsAbsentAsTheProtocolSays) {
  const auto sequences = ReadSequences(TwoSequences());
  ASSERT_TRUE(sequences.ok());
  const Sequence& first = (*sequences)[0];
  EXPECT_TRUE(first.type_ids.empty());
  EXPECT_EQ(first.pooling_start, 0);
  EXPECT_EQ(first.output, model::OutputSpec());
  EXPECT_EQ(first.traffic_class, model::TrafficClass::kInteractive);
}

TEST(ReadSequencesTest, TellsTheBitOrdersApart) {
  const std::pair<v1::RowDtype, model::RowDtype> cases[] = {
      {v1::ROW_DTYPE_FLOAT32, model::RowDtype::kFloat32},
      {v1::ROW_DTYPE_BITS_MSB, model::RowDtype::kSignBitsMsbFirst},
      {v1::ROW_DTYPE_BITS_LSB, model::RowDtype::kSignBitsLsbFirst}};
  for (const auto& [asked, expected] : cases) {
    v1::EncodeRequest request = TwoSequences();
    request.set_output_dtype(asked);
    const auto sequences = ReadSequences(request);
    ASSERT_TRUE(sequences.ok()) << sequences.status().ToString();
    EXPECT_EQ((*sequences)[1].output.dtype, expected);
  }
}

TEST(ReadSequencesTest, RefusesBadShapesWithTheField) {
  struct Case {
    std::function<void(v1::EncodeRequest&)> spoil;
    std::string field;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& r) { r.Clear(); }, "sequence_offsets", "start with 0"},
      {[](auto& r) { r.clear_sequence_offsets(); }, "sequence_offsets", "start with 0"},
      {[](auto& r) { r.set_sequence_offsets(0, 1); }, "sequence_offsets", "start with 0"},
      {[](auto& r) { r.set_sequence_offsets(1, 0); }, "sequence_offsets[1]", "0 after 0"},
      {[](auto& r) { r.set_sequence_offsets(1, 9); }, "sequence_offsets[2]", "4 after 9"},
      {[](auto& r) { r.set_sequence_offsets(2, 5); }, "sequence_offsets", "5, expected 4"},
      {[](auto& r) { r.set_sequence_offsets(2, 4'000'000'000U); }, "sequence_offsets",
       "expected 4"},
      {[](auto& r) { r.add_token_ids(1); }, "sequence_offsets", "4, expected 5"},
      {[](auto& r) { r.set_token_type_ids(std::string(3, '\0')); }, "token_type_ids",
       "3, expected 4"},
      {[](auto& r) { r.add_pooling_starts(0); }, "pooling_starts", "1, expected 2"},
      {[](auto& r) { r.set_dimensions(0); }, "dimensions", "at least 1"},
  };
  for (const Case& one : cases) {
    v1::EncodeRequest request = TwoSequences();
    one.spoil(request);
    const Status status = ReadSequences(request).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << one.message;
    EXPECT_EQ(status.field(), one.field);
    EXPECT_THAT(status.message(), HasSubstr(one.message));
  }
}

TEST(ReadSequencesTest, RefusesByNameWhatIsNotOffered) {
  const std::pair<std::function<void(v1::EncodeRequest&)>, std::string> cases[] = {
      {[](auto& r) { r.add_outputs(v1::OUTPUT_SPARSE); }, "outputs"},
      {[](auto& r) {
         r.add_outputs(v1::OUTPUT_DENSE);
         r.add_outputs(v1::OUTPUT_DENSE);
       },
       "outputs"},
      {[](auto& r) { r.set_output_dtype(v1::ROW_DTYPE_INT8); }, "output_dtype"},
      {[](auto& r) { r.set_output_dtype(static_cast<v1::RowDtype>(99)); }, "output_dtype"},
      {[](auto& r) { r.add_span_offsets(0); }, "span_offsets"},
      {[](auto& r) { r.add_spans_per_sequence(1); }, "span_offsets"},
      {[](auto& r) { r.set_query_vectors(std::string(4, 'x')); }, "query_vectors"},
      {[](auto& r) { r.add_adapters(std::string(3, 'a')); }, "adapters"},
      {[](auto& r) { r.set_raw_scores(true); }, "raw_scores"},
  };
  for (const auto& [ask, field] : cases) {
    v1::EncodeRequest request = TwoSequences();
    ask(request);
    const Status status = ReadSequences(request).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << field;
    EXPECT_EQ(status.field(), field);
  }
}

TEST(ReadSequencesTest, LeavesAPoolingStartBeyondInt32ToTheCore) {
  v1::EncodeRequest request = TwoSequences();
  request.add_pooling_starts(4'000'000'000U);
  request.add_pooling_starts(0);
  const auto sequences = ReadSequences(request);
  ASSERT_TRUE(sequences.ok());
  EXPECT_EQ((*sequences)[0].pooling_start, 3);  // its length, which the core refuses
}

TEST(WriteResponseTest, LeavesOutTheRowOfASequenceThatFailed) {
  testing::WaitingReply reply{std::stop_token()};
  reply.Open(3, 2, model::RowDtype::kFloat32);
  const std::vector<float> rows{1, 2, 5, 6};
  reply.PutRow(0, std::as_bytes(std::span(rows).first(2)));
  reply.PutRow(2, std::as_bytes(std::span(rows).last(2)));
  reply.Finish(0, {.status = {}, .queue = Microseconds(10), .step = Microseconds(20)});
  reply.Finish(1, {.status = Internal("not finite")});
  reply.Finish(2, {.status = {}});
  v1::EncodeResponse response;
  WriteResponse(reply, 77, response);
  ASSERT_EQ(response.blocks_size(), 1);
  const v1::RowBlock& block = response.blocks(0);
  EXPECT_EQ(block.width(), 2U);
  EXPECT_EQ(block.dtype(), v1::ROW_DTYPE_FLOAT32);
  EXPECT_THAT(block.offsets(), ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(block.data(),
            std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float)));
  ASSERT_EQ(response.statuses_size(), 3);
  EXPECT_EQ(response.statuses(0).code(), 0U);
  EXPECT_EQ(response.statuses(1).code(), 13U);
  EXPECT_EQ(response.statuses(1).message(), "not finite");
  EXPECT_EQ(response.timelines(0).queue_us(), 10U);
  EXPECT_EQ(response.timelines(0).step_us(), 20U);
  EXPECT_EQ(response.queued_tokens(), 77U);
}

TEST(WriteResponseTest, ARowOfSignBitsHasAnEighthOfItsWidthInBytes) {
  testing::WaitingReply reply{std::stop_token()};
  reply.Open(3, 24, model::RowDtype::kSignBitsLsbFirst);
  const std::vector<std::byte> bytes(6, std::byte{7});
  reply.PutRow(0, std::span(bytes).first(3));
  reply.PutRow(1, std::span(bytes).last(3));
  for (uint32_t i = 0; i < 3; ++i) {
    reply.Finish(i, {.status = i == 2 ? Internal("not finite") : Status()});
  }
  v1::EncodeResponse response;
  WriteResponse(reply, 0, response);
  const v1::RowBlock& block = response.blocks(0);
  EXPECT_EQ(block.dtype(), v1::ROW_DTYPE_BITS_LSB);
  EXPECT_EQ(block.width(), 24U);
  EXPECT_THAT(block.offsets(), ElementsAre(0, 1, 2, 2));
  EXPECT_EQ(block.data(), std::string(6, 7));
}

TEST(ToGrpcTest, CarriesFieldAndRetryDelay) {
  EXPECT_TRUE(ToGrpc({}, 5).ok());
  const grpc::Status status = ToGrpc(ResourceExhausted("full").WithRetryAfter(3), 5);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "full");
  v1::ErrorDetail detail;
  ASSERT_TRUE(detail.ParseFromString(status.error_details()));
  EXPECT_EQ(detail.retry_after_s(), 3U);
  EXPECT_EQ(detail.queued_tokens(), 5U);
}

}  // namespace
}  // namespace bouquet::tulip
