#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/status.h"
#include "ivy/dispatch/replica_pool.h"
#include "ivy/dispatch/timers.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/text_request.h"
#include "ivy/encode/tokenize_stage.h"

namespace bouquet::ivy {

struct EncoderOptions {
  int64_t max_tokens_per_request = 300'000;  // --max-tokens-per-request: kOutOfRange beyond
  int32_t max_input_tokens = 0;              // the longest input; 0: what the replicas admit
  int32_t vocabulary_rows = 0;  // ids, given or tokenized, are 0 .. vocabulary_rows - 1; 0: theirs
  /// A chunk, the work sent to one replica together, ends at about this many tokens, and at a
  /// replica's step target if that is less: then a long request fills every step, and others get in
  /// between.
  int32_t chunk_tokens = 16'384;
};

/// Text → rows without HTTP: tokenize, split into chunks, dispatch, gather in input order. Handlers
/// call this, and so does `bouquet embed`. It never changes: another tokenizer or other limits are
/// another encoder over the same stage and pool. Thread: any executor; an Encode holds no thread
/// while it waits. The executor must live until stage and replicas have stopped.
class Encoder {
 public:
  /// Stage, pool and timers must outlive the encoder. Error: kInvalidArgument for a
  /// max_input_tokens over what the replicas admit.
  static Result<std::shared_ptr<Encoder>> Create(const EncoderOptions& options, TextSource source,
                                                 TokenizeStage& tokenize_stage, ReplicaPool& pool,
                                                 const Timers& timers = kAsioTimers);

  /// The encoder must live until this returns. Error: kInvalidArgument with the input's path
  /// (empty, over-long, id out of range, invalid UTF-8), kUnimplemented (text, where the model
  /// takes ids only), kOutOfRange, kResourceExhausted (queue full), kDeadlineExceeded, kCancelled,
  /// kUnavailable. It cancels whatever of the request is under way. Items that fail alone are in
  /// `statuses`.
  boost::asio::awaitable<Result<EncodedRows>> Encode(EncodeRequest request);

  /// The tokenizer's part alone: texts → tokens, ids → text. The same. Error: kInvalidArgument with
  /// the input's path (invalid UTF-8, id out of range), kUnimplemented (the model takes ids only, a
  /// decoder that is not served), kOutOfRange (too many tokens), kResourceExhausted, kCancelled,
  /// kDeadlineExceeded.
  boost::asio::awaitable<Result<std::vector<TextAnswer>>> ReadTexts(TextRequest request);

 private:
  Encoder(const EncoderOptions& options, TextSource source, TokenizeStage& tokenize_stage,
          ReplicaPool& pool, const Timers& timers);

  const TextSource source_;
  TokenizeLimits limits_;
  int64_t chunk_tokens_;
  TokenizeStage& tokenize_stage_;
  ReplicaPool& pool_;
  const Timers& timers_;
};

}  // namespace bouquet::ivy
