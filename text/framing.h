#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/post_processor.h"
#include "text/text_pipeline.h"
#include "text/token_spans.h"
#include "text/tokenizer.h"

namespace bouquet::text {

/// The tokens of one text that a sequence takes: the first `num_head`, then `begin` .. `end`.
struct KeptTokens {
  const std::vector<int32_t>* ids = nullptr;
  TokenSpans* spans = nullptr;  // null: not asked for
  std::string_view text;        // what the spans are of
  size_t num_head = 0;
  size_t begin = 0;
  size_t end = 0;
};

/// Leaves `room` tokens. What is cut is cut at `side` of what follows the prompt.
void Cut(KeptTokens& kept, size_t num_prompt, size_t room, TruncationSide side);

/// Cuts the whitespace that begins or ends a kept token, as the vocabulary spells it, off its span.
void TrimSpans(const std::vector<SpanTrimming>& trimmings, bool add_special_tokens,
               const Tokenizer& tokenizer, KeptTokens& kept);

/// Special tokens and texts in the order of the template; spans if `first` has some. `second` is
/// null where the template has none.
TokenSequence Assemble(const SequenceTemplate& frame, bool add_special_tokens,
                       const KeptTokens& first, const KeptTokens* second, size_t num_tokens);

}  // namespace bouquet::text
