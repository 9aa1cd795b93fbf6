#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/awaitable.hpp>

#include "base/status.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/tokenize_stage.h"

namespace bouquet::ivy {

struct EncoderOptions {
  int64_t max_tokens_per_request = 300'000;  // --max-tokens-per-request: kOutOfRange beyond
  int32_t max_input_tokens = 0;              // the longest input: the model's maximum, or lower
  int32_t vocabulary_rows = 0;  // ids, given or tokenized, are 0 .. vocabulary_rows - 1
  int32_t chunk_tokens =
      16'384;  // a chunk, the work sent to one replica together, ends at about this many
};

/// Text → rows without HTTP: tokenize, split into chunks, dispatch, gather in input order. Handlers
/// call this, and so does `bouquet embed`. Thread: any executor; an Encode holds no thread while it
/// waits.
class Encoder {
 public:
  /// All three must outlive the encoder.
  Encoder(EncoderOptions options, TokenizeStage& tokenize_stage, ReplicaPool& pool);

  /// Error: kInvalidArgument with the input's path (empty, over-long, id out of range, invalid
  /// UTF-8), kOutOfRange, kResourceExhausted (queue full), kDeadlineExceeded, kCancelled,
  /// kUnavailable. Items that fail alone are in `statuses`.
  boost::asio::awaitable<Result<EncodedRows>> Encode(EncodeRequest request);

 private:
  EncoderOptions options_;
  TokenizeStage& tokenize_stage_;
  ReplicaPool& pool_;
};

}  // namespace bouquet::ivy
