#include "rose/batch.h"

#include <fmt/format.h>

namespace bouquet::rose {
namespace {

Status CheckSizes(const Batch& batch, const BatchLimits& limits) {
  const size_t tokens = batch.token_ids.size();
  const size_t sequences = batch.outputs.size();
  if (tokens == 0 || tokens > static_cast<size_t>(limits.max_tokens)) {
    return InvalidArgument(
        fmt::format("a step takes 1..{} tokens, not {}", limits.max_tokens, tokens), "token_ids");
  }
  if (sequences == 0 || sequences > static_cast<size_t>(limits.max_sequences)) {
    return InvalidArgument(
        fmt::format("a step takes 1..{} sequences, not {}", limits.max_sequences, sequences),
        "outputs");
  }
  if (batch.positions.size() != tokens ||
      (!batch.token_type_ids.empty() && batch.token_type_ids.size() != tokens)) {
    return InvalidArgument(fmt::format("positions and token types must be one per token: {} and {} "
                                       "for {} tokens",
                                       batch.positions.size(), batch.token_type_ids.size(), tokens),
                           "positions");
  }
  if (batch.sequence_offsets.size() != sequences + 1 || batch.pooling_starts.size() != sequences) {
    return InvalidArgument(
        fmt::format("there must be one offset more than sequences, and one pooling start each: {} "
                    "and {} for {} sequences",
                    batch.sequence_offsets.size(), batch.pooling_starts.size(), sequences),
        "sequence_offsets");
  }
  if (batch.sequence_offsets.front() != 0 || batch.sequence_offsets.back() != batch.num_tokens()) {
    return InvalidArgument(
        fmt::format("sequence offsets must run from 0 to {}, not {} to {}", tokens,
                    batch.sequence_offsets.front(), batch.sequence_offsets.back()),
        "sequence_offsets");
  }
  return {};
}

Status CheckToken(const Batch& batch, const BatchLimits& limits, size_t sequence, size_t token) {
  const size_t within = token - static_cast<size_t>(batch.sequence_offsets[sequence]);
  const int32_t id = batch.token_ids[token];
  if (id < 0 || id >= limits.vocabulary_rows) {
    return InvalidArgument(fmt::format("token id must be 0..{}, not {}: sequence {}, token {}",
                                       limits.vocabulary_rows - 1, id, sequence, within),
                           "token_ids");
  }
  const int32_t position = batch.positions[token];
  if (position < 0 || position >= limits.max_positions) {
    return InvalidArgument(fmt::format("position must be 0..{}, not {}: sequence {}, token {}",
                                       limits.max_positions - 1, position, sequence, within),
                           "positions");
  }
  const int32_t type = batch.token_type_ids.empty() ? 0 : batch.token_type_ids[token];
  if (type < 0 || type >= limits.token_types) {
    return InvalidArgument(fmt::format("token type must be 0..{}, not {}: sequence {}, token {}",
                                       limits.token_types - 1, type, sequence, within),
                           "token_type_ids");
  }
  return {};
}

Status CheckSequence(const Batch& batch, const BatchLimits& limits, size_t sequence) {
  const int32_t begin = batch.sequence_offsets[sequence];
  const int32_t end = batch.sequence_offsets[sequence + 1];
  // The bounds of the whole were checked, but one falling offset could still lie outside.
  if (begin < 0 || end <= begin || end > batch.num_tokens()) {
    return InvalidArgument(fmt::format("sequence must have at least one token: sequence {} spans "
                                       "{}..{}",
                                       sequence, begin, end),
                           "sequence_offsets");
  }
  const int32_t pooling_start = batch.pooling_starts[sequence];
  if (pooling_start < 0 || pooling_start >= end - begin) {
    return InvalidArgument(fmt::format("pooling must start at one of the {} tokens, not at {}: "
                                       "sequence {}",
                                       end - begin, pooling_start, sequence),
                           "pooling_starts");
  }
  if (batch.outputs[sequence].dimensions > static_cast<uint32_t>(limits.width)) {
    return InvalidArgument(fmt::format("dimensions must be 0..{}, not {}: sequence {}",
                                       limits.width, batch.outputs[sequence].dimensions, sequence),
                           "dimensions");
  }
  for (int32_t token = begin; token < end; ++token) {
    RETURN_IF_ERROR(CheckToken(batch, limits, sequence, static_cast<size_t>(token)));
  }
  return {};
}

}  // namespace

void Batch::Clear() {
  token_ids.clear();
  token_type_ids.clear();
  positions.clear();
  sequence_offsets.clear();
  pooling_starts.clear();
  outputs.clear();
}

void Batch::Add(const std::vector<int32_t>& ids, const std::vector<uint8_t>& type_ids,
                int32_t pooling_start, const model::OutputSpec& output) {
  CHECK(type_ids.empty() || type_ids.size() == ids.size());
  if (sequence_offsets.empty()) {
    sequence_offsets.push_back(0);
  }
  // The first sequence with types fills in the zeros of those before it.
  if (!type_ids.empty() && token_type_ids.empty()) {
    token_type_ids.assign(token_ids.size(), 0);
  }
  const bool has_types = !type_ids.empty() || !token_type_ids.empty();
  for (size_t i = 0; i < ids.size(); ++i) {
    token_ids.push_back(ids[i]);
    positions.push_back(static_cast<int32_t>(i));
    if (has_types) {
      token_type_ids.push_back(type_ids.empty() ? 0 : type_ids[i]);
    }
  }
  sequence_offsets.push_back(num_tokens());
  pooling_starts.push_back(pooling_start);
  outputs.push_back(output);
}

Status ValidateBatch(const Batch& batch, const BatchLimits& limits) {
  RETURN_IF_ERROR(CheckSizes(batch, limits));
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    RETURN_IF_ERROR(CheckSequence(batch, limits, i));
  }
  return {};
}

}  // namespace bouquet::rose
