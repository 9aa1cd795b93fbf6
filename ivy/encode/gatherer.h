#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ivy/dispatch/replica.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/splitter.h"

namespace bouquet::ivy {

/// Puts the rows of a request's chunks together in input order. One thread at a time.
class Gatherer {
 public:
  /// Takes note of lengths and truncation; `sequences` stay the caller's.
  Gatherer(const std::vector<text::TokenSequence>& sequences, int64_t tokenize_us);

  const std::vector<int32_t>& token_counts() const { return result_.token_counts; }

  /// Takes the answer to one chunk. Error: what ends the request as a whole, which is any status
  /// but kInternal: an input that fails alone is kept in `statuses`.
  Status Add(const ChunkRange& range, ChunkRows rows);

  /// Once every range has been added.
  EncodedRows Take();

 private:
  EncodedRows result_;
  int64_t queue_us_ = 0;  // sums over the inputs
  int64_t step_us_ = 0;
};

}  // namespace bouquet::ivy
