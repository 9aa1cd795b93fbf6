#include "tulip/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace bouquet::tulip {
namespace {

static_assert(std::endian::native == std::endian::little, "rows travel in little-endian order");

Status NotOffered(const char* field) {
  return Unimplemented(fmt::format("{} is not offered by this server", field), field);
}

Status CheckOffered(const v1::EncodeRequest& request) {
  if (!request.span_offsets().empty() || !request.spans_per_sequence().empty()) {
    return NotOffered("span_offsets");
  }
  if (!request.query_vectors().empty() || !request.query_vector_offsets().empty()) {
    return NotOffered("query_vectors");
  }
  if (!request.adapters().empty()) {
    return NotOffered("adapters");
  }
  if (request.raw_scores()) {
    return NotOffered("raw_scores");
  }
  if (request.outputs_size() > 1 ||
      (request.outputs_size() == 1 && request.outputs(0) != v1::OUTPUT_DENSE)) {
    return Unimplemented(
        "outputs must be OUTPUT_DENSE alone: others are not offered by this server", "outputs");
  }
  return {};
}

/// Int8 and uint8 belong to models with a quantiser of their own, of which none is served yet.
Result<model::RowDtype> ReadDtype(v1::RowDtype dtype) {
  switch (dtype) {
    case v1::ROW_DTYPE_UNSPECIFIED:
    case v1::ROW_DTYPE_FLOAT32: return model::RowDtype::kFloat32;
    case v1::ROW_DTYPE_BITS_MSB: return model::RowDtype::kSignBitsMsbFirst;
    case v1::ROW_DTYPE_BITS_LSB: return model::RowDtype::kSignBitsLsbFirst;
    default:
      return Unimplemented(
          "output_dtype must be ROW_DTYPE_FLOAT32, ROW_DTYPE_BITS_MSB or ROW_DTYPE_BITS_LSB: "
          "others are not offered by this server",
          "output_dtype");
  }
}

v1::RowDtype WireDtype(model::RowDtype dtype) {
  switch (dtype) {
    case model::RowDtype::kFloat32: return v1::ROW_DTYPE_FLOAT32;
    case model::RowDtype::kTanhInt8: return v1::ROW_DTYPE_INT8;
    case model::RowDtype::kSignBitsMsbFirst: return v1::ROW_DTYPE_BITS_MSB;
    case model::RowDtype::kSignBitsLsbFirst: return v1::ROW_DTYPE_BITS_LSB;
  }
  return v1::ROW_DTYPE_UNSPECIFIED;
}

Status CheckOffsets(const v1::EncodeRequest& request) {
  const auto& offsets = request.sequence_offsets();
  const auto num_ids = static_cast<uint32_t>(request.token_ids_size());
  if (offsets.size() < 2 || offsets[0] != 0) {
    return InvalidArgument(
        "sequence_offsets must start with 0 and hold one value more than there "
        "are sequences",
        "sequence_offsets");
  }
  for (int i = 1; i < offsets.size(); ++i) {
    if (offsets[i] <= offsets[i - 1]) {
      return InvalidArgument(fmt::format("sequence_offsets must rise strictly: {} after {}",
                                         offsets[i], offsets[i - 1]),
                             fmt::format("sequence_offsets[{}]", i));
    }
  }
  if (offsets[offsets.size() - 1] != num_ids) {
    return InvalidArgument(
        fmt::format("sequence_offsets must end with the number of token ids: {}, expected {}",
                    offsets[offsets.size() - 1], num_ids),
        "sequence_offsets");
  }
  if (!request.token_type_ids().empty() && request.token_type_ids().size() != num_ids) {
    return InvalidArgument(fmt::format("token_type_ids must hold one byte a token: {}, expected {}",
                                       request.token_type_ids().size(), num_ids),
                           "token_type_ids");
  }
  if (!request.pooling_starts().empty() && request.pooling_starts_size() != offsets.size() - 1) {
    return InvalidArgument(fmt::format("pooling_starts must hold one value a sequence: {}, "
                                       "expected {}",
                                       request.pooling_starts_size(), offsets.size() - 1),
                           "pooling_starts");
  }
  return {};
}

Result<model::OutputSpec> ReadOutput(const v1::EncodeRequest& request) {
  model::OutputSpec output;
  if (request.has_dimensions()) {
    if (request.dimensions() == 0) {
      return InvalidArgument("dimensions must be at least 1: 0", "dimensions");
    }
    output.dimensions = request.dimensions();
  }
  ASSIGN_OR_RETURN(output.dtype, ReadDtype(request.output_dtype()));
  output.normalize = !request.has_normalize() || request.normalize();
  return output;
}

}  // namespace

Result<std::vector<Sequence>> ReadSequences(const v1::EncodeRequest& request) {
  RETURN_IF_ERROR(CheckOffered(request));
  RETURN_IF_ERROR(CheckOffsets(request));
  ASSIGN_OR_RETURN(const model::OutputSpec output, ReadOutput(request));
  const auto& offsets = request.sequence_offsets();
  std::vector<Sequence> sequences(static_cast<size_t>(offsets.size() - 1));
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = sequences[i];
    const uint32_t begin = offsets[static_cast<int>(i)];
    const uint32_t count = offsets[static_cast<int>(i) + 1] - begin;
    sequence.ids.resize(count);
    std::memcpy(sequence.ids.data(), request.token_ids().data() + begin, count * sizeof(uint32_t));
    if (!request.token_type_ids().empty()) {
      const auto* types = reinterpret_cast<const uint8_t*>(request.token_type_ids().data()) + begin;
      sequence.type_ids.assign(types, types + count);
    }
    if (!request.pooling_starts().empty()) {
      // A value beyond int32 becomes one beyond the sequence, which the core refuses.
      sequence.pooling_start =
          static_cast<int32_t>(std::min(request.pooling_starts(static_cast<int>(i)), count));
    }
    sequence.output = output;
    sequence.traffic_class = request.traffic_class() == v1::TRAFFIC_CLASS_BULK
                                 ? model::TrafficClass::kBulk
                                 : model::TrafficClass::kInteractive;
  }
  return sequences;
}

void WriteResponse(ChunkReply& reply, uint64_t queued_tokens, v1::EncodeResponse& response) {
  const std::vector<ChunkReply::Outcome>& outcomes = reply.outcomes();
  const size_t row_bytes = reply.row_bytes();
  const auto* rows = reinterpret_cast<const char*>(reply.row_data().data());
  const bool all_ok = std::ranges::all_of(outcomes, [](const auto& o) { return o.status.ok(); });

  v1::RowBlock& block = *response.add_blocks();
  block.set_output(v1::OUTPUT_DENSE);
  block.set_dtype(WireDtype(reply.dtype()));
  block.set_width(reply.dimensions());
  block.mutable_offsets()->Reserve(static_cast<int>(outcomes.size() + 1));
  block.add_offsets(0);
  std::string& data = *block.mutable_data();
  data.reserve(reply.row_data().size());
  response.mutable_timelines()->Reserve(static_cast<int>(outcomes.size()));
  uint32_t num_rows = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const ChunkReply::Outcome& outcome = outcomes[i];
    if (outcome.status.ok()) {
      data.append(rows + i * row_bytes, row_bytes);
      ++num_rows;
    }
    block.add_offsets(num_rows);
    if (!all_ok) {
      v1::SequenceStatus& status = *response.add_statuses();
      status.set_code(static_cast<uint32_t>(outcome.status.code()));
      status.set_message(outcome.status.message());
    }
    v1::Timeline& timeline = *response.add_timelines();
    timeline.set_queue_us(static_cast<uint32_t>(outcome.queue.count()));
    timeline.set_step_us(static_cast<uint32_t>(outcome.step.count()));
  }
  response.set_queued_tokens(queued_tokens);
}

void WriteDescription(const CoreDescription& core, v1::ModelDescription& description) {
  const auto unsigned_value = [](auto value) { return static_cast<uint32_t>(value); };
  description.set_model(core.model_name);
  description.set_identity(core.identity);
  description.set_numerics_fingerprint(core.engine.numerics_fingerprint);
  description.set_device(core.engine.device);
  description.set_device_description(core.engine.device_description);
  description.set_dtype(core.engine.dtype);
  description.set_width(unsigned_value(core.engine.limits.width));
  description.set_vocabulary_rows(unsigned_value(core.engine.limits.vocabulary_rows));
  description.set_model_max_tokens(unsigned_value(core.model_max_tokens));
  description.set_max_input_tokens(unsigned_value(core.max_input_tokens));
  description.set_step_tokens(unsigned_value(core.step_tokens));
  description.set_max_batch_sequences(unsigned_value(core.max_batch_sequences));
  description.set_max_queue_ms(unsigned_value(core.max_queue.count()));
  description.set_weight_bytes(static_cast<uint64_t>(core.engine.weight_bytes));
  description.add_outputs(v1::OUTPUT_DENSE);
}

grpc::Status ToGrpc(const Status& status, uint64_t queued_tokens) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  v1::ErrorDetail detail;
  detail.set_field(status.field());
  detail.set_retry_after_s(static_cast<uint32_t>(status.retry_after_seconds()));
  detail.set_queued_tokens(queued_tokens);
  return {static_cast<grpc::StatusCode>(status.code()), status.message(),
          detail.SerializeAsString()};
}

}  // namespace bouquet::tulip
