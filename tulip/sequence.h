#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "model/output_spec.h"
#include "model/traffic_class.h"
#include "tulip/chunk_reply.h"

namespace bouquet::tulip {

/// One input as the model reads it, and what its answer needs. Moved from hop to hop, never copied:
/// the vectors are the ones that the submitter made.
struct Sequence {
  std::vector<int32_t> ids;       // [num_tokens]
  std::vector<uint8_t> type_ids;  // [num_tokens]; empty when all are 0
  int32_t pooling_start = 0;      // first token that pooling counts
  model::OutputSpec output;
  model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
  Deadline deadline;

  // Filled by Core::Submit.
  TimePoint arrival;
  uint32_t index_in_chunk = 0;
  /// Shared: the last sequence of the chunk and the caller who waits end in either order.
  std::shared_ptr<ChunkReply> reply;

  int32_t num_tokens() const { return static_cast<int32_t>(ids.size()); }
};

}  // namespace bouquet::tulip
