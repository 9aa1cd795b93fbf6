#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/output_spec.h"

namespace bouquet::rose {

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

  int32_t num_tokens() const { return static_cast<int32_t>(token_ids.size()); }
  int32_t num_sequences() const { return static_cast<int32_t>(outputs.size()); }

  /// Empties the vectors and keeps their memory.
  void Clear();
  /// Appends one sequence at positions 0, 1, …. `token_type_ids` may be empty (all 0).
  void Add(const std::vector<int32_t>& ids, const std::vector<uint8_t>& type_ids,
           int32_t pooling_start, const model::OutputSpec& output);
};

/// Sizes a batch must respect; a model folder and the engine's options give them.
struct BatchLimits {
  int32_t vocabulary_rows = 0;  // ids are 0 .. vocabulary_rows - 1
  int32_t token_types = 1;      // types are 0 .. token_types - 1
  int32_t max_positions = 0;    // positions are 0 .. max_positions - 1
  int32_t max_tokens = 0;       // of one step
  int32_t max_sequences = 0;    // of one step
  int32_t width = 0;            // dimensions are 0 .. width
};

/// The invariants above, checked once, at the engine's door. Error: kInvalidArgument that names
/// sequence, token and value.
Status ValidateBatch(const Batch& batch, const BatchLimits& limits);

}  // namespace bouquet::rose
