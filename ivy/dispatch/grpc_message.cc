#include "ivy/dispatch/grpc_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace bouquet::ivy {
namespace {

static_assert(std::endian::native == std::endian::little, "rows travel in little-endian order");

constexpr int kHighestCode = 16;

StatusCode ToCode(uint32_t code) {
  return code <= kHighestCode ? static_cast<StatusCode>(code) : StatusCode::kUnknown;
}

Status BadResponse(std::string_view what) {
  return Internal(fmt::format("a replica's response has the wrong shape: {}", what));
}

/// Offsets of `count` sequences: from 0, each with a row or none, up to the rows that there are.
Status CheckBlock(const v1::RowBlock& block, size_t count) {
  if (block.output() != v1::OUTPUT_DENSE || block.dtype() != v1::ROW_DTYPE_FLOAT32) {
    return BadResponse("output or dtype");
  }
  const auto& offsets = block.offsets();
  if (static_cast<size_t>(offsets.size()) != count + 1 || offsets[0] != 0) {
    return BadResponse("offsets");
  }
  for (int i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1] || offsets[i] - offsets[i - 1] > 1) {
      return BadResponse("offsets");
    }
  }
  const size_t num_rows = offsets[static_cast<int>(count)];
  if (block.data().size() != num_rows * block.width() * sizeof(float)) {
    return BadResponse("size of the data");
  }
  return {};
}

}  // namespace

void WriteRequest(const Chunk& chunk, v1::EncodeRequest& request) {
  size_t num_tokens = 0;
  bool has_types = false;
  bool has_pooling_starts = false;
  for (const text::TokenSequence& sequence : chunk.sequences) {
    num_tokens += sequence.ids.size();
    has_types = has_types || !sequence.type_ids.empty();
    has_pooling_starts = has_pooling_starts || sequence.pooling_start != 0;
  }
  auto& ids = *request.mutable_token_ids();
  ids.Resize(static_cast<int>(num_tokens), 0);
  auto& offsets = *request.mutable_sequence_offsets();
  offsets.Reserve(static_cast<int>(chunk.sequences.size() + 1));
  offsets.Add(0);
  if (has_types) {
    request.mutable_token_type_ids()->resize(num_tokens, '\0');
  }
  size_t begin = 0;
  for (const text::TokenSequence& sequence : chunk.sequences) {
    std::memcpy(ids.mutable_data() + begin, sequence.ids.data(),
                sequence.ids.size() * sizeof(int32_t));
    if (!sequence.type_ids.empty()) {
      std::memcpy(request.mutable_token_type_ids()->data() + begin, sequence.type_ids.data(),
                  sequence.type_ids.size());
    }
    begin += sequence.ids.size();
    offsets.Add(static_cast<uint32_t>(begin));
    if (has_pooling_starts) {
      request.add_pooling_starts(static_cast<uint32_t>(sequence.pooling_start));
    }
  }
  request.add_outputs(v1::OUTPUT_DENSE);
  request.set_output_dtype(v1::ROW_DTYPE_FLOAT32);
  if (chunk.output.dimensions != 0) {
    request.set_dimensions(chunk.output.dimensions);
  }
  request.set_normalize(chunk.output.normalize);
  request.set_traffic_class(chunk.traffic_class == model::TrafficClass::kBulk
                                ? v1::TRAFFIC_CLASS_BULK
                                : v1::TRAFFIC_CLASS_INTERACTIVE);
}

Result<ChunkRows> ReadRows(const v1::EncodeResponse& response, size_t num_sequences) {
  if (response.blocks_size() != 1) {
    return BadResponse("number of blocks");
  }
  const v1::RowBlock& block = response.blocks(0);
  RETURN_IF_ERROR(CheckBlock(block, num_sequences));
  if (response.statuses_size() != 0 &&
      static_cast<size_t>(response.statuses_size()) != num_sequences) {
    return BadResponse("number of statuses");
  }
  ChunkRows rows;
  rows.dimensions = block.width();
  rows.values.resize(num_sequences * rows.dimensions);
  rows.statuses.resize(num_sequences);
  const size_t row_bytes = size_t{block.width()} * sizeof(float);
  for (size_t i = 0; i < num_sequences; ++i) {
    const uint32_t row = block.offsets(static_cast<int>(i));
    const bool has_row = block.offsets(static_cast<int>(i) + 1) != row;
    if (response.statuses_size() != 0) {
      const v1::SequenceStatus& status = response.statuses(static_cast<int>(i));
      if (status.code() != 0) {
        rows.statuses[i] = Status(ToCode(status.code()), status.message());
      }
    }
    if (has_row != rows.statuses[i].ok()) {
      return BadResponse("a sequence has neither a row nor an error, or both");
    }
    if (has_row) {
      std::memcpy(rows.values.data() + i * rows.dimensions, block.data().data() + row * row_bytes,
                  row_bytes);
    }
  }
  for (const v1::Timeline& timeline : response.timelines()) {
    rows.queue_us += timeline.queue_us();
    rows.step_us += timeline.step_us();
  }
  return rows;
}

ReplicaDescription ReadDescription(const v1::ModelDescription& description) {
  ReplicaDescription read;
  read.model_name = description.model();
  read.identity = description.identity();
  read.numerics_fingerprint = description.numerics_fingerprint();
  read.device = description.device();
  read.device_description = description.device_description();
  read.dtype = description.dtype();
  read.width = static_cast<int32_t>(description.width());
  read.vocabulary_rows = static_cast<int32_t>(description.vocabulary_rows());
  read.model_max_tokens = static_cast<int32_t>(description.model_max_tokens());
  read.max_input_tokens = static_cast<int32_t>(description.max_input_tokens());
  read.step_tokens = static_cast<int32_t>(description.step_tokens());
  read.max_batch_sequences = static_cast<int32_t>(description.max_batch_sequences());
  read.max_queue_ms = description.max_queue_ms();
  read.weight_bytes = static_cast<int64_t>(description.weight_bytes());
  return read;
}

ReadStatus ReadGrpcStatus(const grpc::Status& status) {
  v1::ErrorDetail detail;
  const bool from_server =
      !status.error_details().empty() && detail.ParseFromString(status.error_details());
  ReadStatus read{Status(ToCode(static_cast<uint32_t>(status.error_code())), status.error_message(),
                         detail.field()),
                  from_server};
  if (detail.retry_after_s() > 0) {
    read.status =
        std::move(read.status).WithRetryAfter(static_cast<int32_t>(detail.retry_after_s()));
  }
  return read;
}

}  // namespace bouquet::ivy
