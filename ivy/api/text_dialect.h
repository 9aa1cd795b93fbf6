#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ivy/api/dialect.h"
#include "ivy/api/field_table.h"
#include "ivy/api/request.h"
#include "ivy/encode/text_request.h"

namespace bouquet::ivy::api {

/// What the renderer of an answer about texts is given.
struct TextAnswers {
  std::span<const TextAnswer> answers;  // one an input
  bool count_only = false;
  bool return_token_strings = false;
  int32_t max_input_tokens = 0;
};

/// One dialect's way to ask for tokens of texts or for texts of tokens: all that such a route needs
/// to know of it.
struct TextDialect {
  Dialect dialect;  // of errors and metrics
  BodySpec body;
  /// Whether special tokens are left out of a text unless the body says otherwise.
  bool skips_special_tokens;
  /// Appends the whole body.
  void (*render)(const TextAnswers& answers, std::string& out);
  /// The schema of the 200 answer, as a JSON text.
  std::string_view answer_schema;
};

/// POST /tokenize as text-embeddings-inference defines it: [[{id, text, special, start, stop}]],
/// offsets in bytes of the text with its prompt. `count_only` is Bouquet's: [number of tokens].
extern const TextDialect kTeiTokenize;
/// POST /decode as text-embeddings-inference defines it: [text].
extern const TextDialect kTeiDecode;
/// POST /tokenize as vLLM defines it: {count, max_model_len, tokens, token_strs}. `count_only` is
/// Bouquet's: no tokens.
extern const TextDialect kVllmTokenize;
/// POST /detokenize as vLLM defines it: {prompt}.
extern const TextDialect kVllmDetokenize;

/// Which of the two a body of POST /tokenize is: vLLM's if it has "prompt" or "messages", else
/// TEI's, also where it cannot be read.
const TextDialect& TokenizeDialectOf(std::string_view body, const ParseOptions& options);

}  // namespace bouquet::ivy::api
