#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "testing/waiting_reply.h"
#include "tulip/sequence.h"

// What tests of the core send, and what they read of its answer.

namespace bouquet::testing {

/// One sequence for each list of ids.
inline std::vector<tulip::Sequence> MakeChunk(const std::vector<std::vector<int32_t>>& ids) {
  std::vector<tulip::Sequence> sequences;
  for (const std::vector<int32_t>& sequence_ids : ids) {
    tulip::Sequence sequence;
    sequence.ids = sequence_ids;
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

/// The row of one sequence, as wide as was asked for.
inline std::vector<float> RowAt(WaitingReply& reply, size_t index) {
  const auto begin = reply.rows().begin() + static_cast<ptrdiff_t>(index * reply.dimensions());
  return {begin, begin + reply.dimensions()};
}

}  // namespace bouquet::testing
