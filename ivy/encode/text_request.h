#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ivy/encode/encode_request.h"
#include "model/traffic_class.h"
#include "text/text_pipeline.h"

namespace bouquet::ivy {

/// What a handler asks of the tokenizer alone: texts are tokenized, token ids decoded. No input is
/// truncated, and an empty one is fine.
struct TextRequest {
  std::vector<EncodeInput> inputs;
  /// Path of an input in the body, for errors: `input[3]`, or `input` alone when it was no list.
  std::string field = "inputs";
  bool field_is_list = true;

  std::string prompt;  // resolved text, put before each text
  bool add_special_tokens = true;
  bool parse_special = true;
  bool count_only = false;          // no spans, and no limit on tokens
  bool skip_special_tokens = true;  // of ids

  model::TrafficClass traffic_class = model::TrafficClass::kInteractive;
  Deadline deadline;
  /// Stopped when the answer is no longer wanted.
  std::stop_source cancelled;
};

/// One input's result.
struct TextAnswer {
  std::string text;  // as tokenized, prompt in front; or as decoded
  text::TokenSequence tokens;
  std::vector<std::string> pieces;  // as the vocabulary spells them; one a token, unless count_only
};

}  // namespace bouquet::ivy
