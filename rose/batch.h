#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/output_spec.h"

namespace bouquet::rose {

/// Tokens begin .. end − 1 of a sequence, counted within it.
struct TokenSpan {
  int32_t begin = 0;
  int32_t end = 0;
};

/// The work of one step: sequences end to end, no padding anywhere. Built by Tulip's scheduler,
/// read by Engine::Step.
struct Batch {
  std::vector<int32_t> token_ids;       // [num_tokens]
  std::vector<int32_t> token_type_ids;  // [num_tokens]; empty when every type is 0
  std::vector<int32_t> positions;       // [num_tokens]; 0.. within each sequence for an encoder
  std::vector<int32_t>
      sequence_offsets;  // [num_sequences + 1]; first 0, strictly rising, last num_tokens
  std::vector<int32_t>
      pooling_starts;  // [num_sequences]; first token that pooling counts, within its sequence
  std::vector<model::OutputSpec> outputs;  // [num_sequences]
  // A sequence with spans gives a row per span, the mean over its tokens, instead of one row
  // (contextual models). They lie in order, do not overlap, and start at the pooling start or
  // later.
  std::vector<TokenSpan> spans;             // of all sequences, end to end
  std::vector<int32_t> spans_per_sequence;  // [num_sequences]; empty when none has spans

  int32_t num_tokens() const { return static_cast<int32_t>(token_ids.size()); }
  int32_t num_sequences() const { return static_cast<int32_t>(outputs.size()); }
  int32_t num_spans_of(int32_t sequence) const {
    return spans_per_sequence.empty() ? 0 : spans_per_sequence[static_cast<size_t>(sequence)];
  }

  /// Empties the vectors and keeps their memory.
  void Clear();
  /// Appends one sequence at positions 0, 1, …. `token_type_ids` may be empty (all 0).
  void Add(const std::vector<int32_t>& ids, const std::vector<uint8_t>& type_ids,
           int32_t pooling_start, const model::OutputSpec& output,
           std::span<const TokenSpan> token_spans = {});
};

/// Sizes a batch must respect; a model folder and the engine's options give them.
struct BatchLimits {
  int32_t vocabulary_rows = 0;  // ids are 0 .. vocabulary_rows - 1
  int32_t token_types = 1;      // types are 0 .. token_types - 1
  int32_t max_positions = 0;    // positions are 0 .. max_positions - 1
  int32_t max_tokens = 0;       // of one step
  int32_t max_sequences = 0;    // of one step
  int32_t width = 0;            // dimensions are 0 .. width
  int32_t max_rows = 0;         // of one step: one per sequence, or one per span of it
  bool takes_spans = false;     // pooling is the mean alone
};

/// The invariants above, checked once, at the engine's door. Error: kInvalidArgument that names
/// sequence, token or span, and value.
Status ValidateBatch(const Batch& batch, const BatchLimits& limits);

}  // namespace bouquet::rose
