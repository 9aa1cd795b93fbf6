#include "rose/batch.h"

#include <fmt/format.h>

#include <algorithm>

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

/// How many spans and rows there are, so that what follows reads within its vectors.
Status CheckNumberOfRows(const Batch& batch, const BatchLimits& limits) {
  const size_t sequences = batch.outputs.size();
  if (!batch.spans_per_sequence.empty() && batch.spans_per_sequence.size() != sequences) {
    return InvalidArgument(fmt::format("there must be one number of spans per sequence, or none at "
                                       "all: {} for {} sequences",
                                       batch.spans_per_sequence.size(), sequences),
                           "spans_per_sequence");
  }
  int64_t spans = 0;
  int64_t rows = 0;
  for (size_t i = 0; i < sequences; ++i) {
    const int32_t count = batch.num_spans_of(static_cast<int32_t>(i));
    if (count < 0) {
      return InvalidArgument(
          fmt::format("a sequence has 0 spans or more, not {}: sequence {}", count, i),
          "spans_per_sequence");
    }
    spans += count;
    rows += std::max(count, 1);
  }
  if (spans != static_cast<int64_t>(batch.spans.size())) {
    return InvalidArgument(fmt::format("numbers of spans must add up to the spans: {} for {} spans",
                                       spans, batch.spans.size()),
                           "spans_per_sequence");
  }
  if (spans > 0 && !limits.takes_spans) {
    return InvalidArgument(
        fmt::format("spans are served by models that pool by the mean alone, which this one does "
                    "not: {} spans",
                    spans),
        "spans");
  }
  if (rows > limits.max_rows) {
    return InvalidArgument(fmt::format("a step takes 1..{} rows, one per sequence or one per span "
                                       "of it, not {}",
                                       limits.max_rows, rows),
                           "spans");
  }
  return {};
}

/// `span` is the index of a sequence's first span; moved on behind its last.
Status CheckSpans(const Batch& batch, size_t sequence, size_t* span) {
  const int32_t length = batch.sequence_offsets[sequence + 1] - batch.sequence_offsets[sequence];
  const int32_t count = batch.num_spans_of(static_cast<int32_t>(sequence));
  int32_t earliest = batch.pooling_starts[sequence];
  for (int32_t i = 0; i < count; ++i) {
    const auto [begin, end] = batch.spans[(*span)++];
    if (begin < earliest || end <= begin || end > length) {
      return InvalidArgument(
          fmt::format("a span must hold a token, start at {} or later and end at "
                      "{} or before, not {}..{}: sequence {}, span {}",
                      earliest, length, begin, end, sequence, i),
          "spans");
    }
    earliest = end;
  }
  return {};
}

Status CheckOutput(const model::OutputSpec& output, const BatchLimits& limits, size_t sequence) {
  const auto width = static_cast<uint32_t>(limits.width);
  if (output.dimensions > width) {
    return InvalidArgument(fmt::format("dimensions must be 0..{}, not {}: sequence {}", width,
                                       output.dimensions, sequence),
                           "dimensions");
  }
  const uint32_t dimensions = output.dimensions == 0 ? width : output.dimensions;
  if (IsSignBits(output.dtype) && dimensions % 8 != 0) {
    return InvalidArgument(
        fmt::format("dimensions of sign bits must be a multiple of 8, not {}: sequence {}",
                    dimensions, sequence),
        "dimensions");
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
  RETURN_IF_ERROR(CheckOutput(batch.outputs[sequence], limits, sequence));
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
  spans.clear();
  spans_per_sequence.clear();
}

void Batch::Add(const std::vector<int32_t>& ids, const std::vector<uint8_t>& type_ids,
                int32_t pooling_start, const model::OutputSpec& output,
                std::span<const TokenSpan> token_spans) {
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
  // Likewise the first one with spans.
  if (!token_spans.empty() && spans_per_sequence.empty()) {
    spans_per_sequence.assign(outputs.size(), 0);
  }
  if (!token_spans.empty() || !spans_per_sequence.empty()) {
    spans.insert(spans.end(), token_spans.begin(), token_spans.end());
    spans_per_sequence.push_back(static_cast<int32_t>(token_spans.size()));
  }
  outputs.push_back(output);
}

Status ValidateBatch(const Batch& batch, const BatchLimits& limits) {
  RETURN_IF_ERROR(CheckSizes(batch, limits));
  RETURN_IF_ERROR(CheckNumberOfRows(batch, limits));
  size_t span = 0;
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    RETURN_IF_ERROR(CheckSequence(batch, limits, i));
    RETURN_IF_ERROR(CheckSpans(batch, i, &span));
  }
  return {};
}

}  // namespace bouquet::rose
