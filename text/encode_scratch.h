#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/bpe_queue.h"
#include "text/byte_span.h"
#include "text/token_spans.h"
#include "text/unicode/normalization.h"

namespace bouquet::text {

/// A part of a piece that bpe.h is merging.
struct BpeSymbol {
  int32_t id;
  int32_t previous;  // index, or -1
  int32_t next;
  uint32_t num_bytes;  // of the piece; 0: merged into the one before
};
/// A merge that may be made: of the symbol `left` and the one behind it.
struct BpeMerge {
  uint32_t rank;
  int32_t left;
  int32_t id;
};

/// The best way to a place in the piece that unigram.h is cutting: its score and its last token.
struct UnigramStep {
  double score = 0;
  uint32_t num_bytes = 0;  // of the token; 0: no way yet
  int32_t id = -1;
};

/// Pieces that a pre-tokenizer's stage wrote anew.
struct RewrittenPieces {
  std::string text;
  std::vector<ByteSpan> origins;  // by byte of `text`, where spans are asked for
};

/// Buffers of one caller, reused from call to call: after a text of each length no further one
/// allocates. One per thread. What one call does, and which field each stage fills:
///   1 TextPipeline joins prompt and text                              joined
///   2 added tokens are found in the raw text; the rest goes on        (views)
///   3 the normalizer's stages write to two buffers by turns           normalized, spare, unicode
///   4 normalized added tokens are found; the rest goes on             (views)
///   5 the pre-tokenizer's stages cut it                               pieces, …, prefixed, …
///   6 the model turns each piece into ids                             symbols, merges, …
///   7 TextPipeline frames them                                        ids, second_ids, prompt_ids
class EncodeScratch {
 public:
  Status status;  // of this call: set by a stage that gives up
  std::string joined;
  std::string normalized;
  std::string spare;
  unicode::NormalizationScratch unicode;
  // Only where spans are asked for: of each byte of the normalized text, and of a stage's output.
  std::vector<ByteSpan> origins;
  std::vector<ByteSpan> spare_origins;
  std::vector<uint32_t> sources;
  std::vector<ByteSpan> piece_spans;  // of the tokens of one piece
  std::vector<std::string_view> pieces;
  std::vector<std::string_view> spare_pieces;
  RewrittenPieces prefixed;    // that got a space in front
  RewrittenPieces metaspaced;  // whose spaces a Metaspace stage rewrote; by turns
  RewrittenPieces spare_metaspaced;
  std::vector<BpeSymbol> symbols;
  std::vector<BpeMerge> merges;
  BpeQueue bpe_queue;  // of long pieces
  std::vector<UnigramStep> unigram_steps;
  std::vector<int32_t> ids;
  std::vector<int32_t> second_ids;
  std::vector<int32_t> prompt_ids;
  TokenSpans spans;  // of ids and second_ids, only where asked for
  TokenSpans second_spans;
};

}  // namespace bouquet::text
