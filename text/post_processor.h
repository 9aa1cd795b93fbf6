#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"

namespace bouquet::text {

/// The special tokens around one text or a pair, as data: what tokenizer.json's TemplateProcessing,
/// BertProcessing and RobertaProcessing come down to.
struct SequenceTemplate {
  struct Part {
    enum class Kind : uint8_t { kSpecial, kFirst, kSecond };
    Kind kind = Kind::kSpecial;
    std::vector<int32_t> ids;  // kSpecial
    uint8_t type_id = 0;
  };
  std::vector<Part> parts;
  // Types of the texts when no special tokens are wanted.
  uint8_t bare_first_type = 0;
  uint8_t bare_second_type = 0;

  int32_t num_special_tokens() const;
  /// Special tokens in front of the first text.
  int32_t num_leading_tokens() const;
};

/// A byte-level stage that cuts surrounding whitespace off the tokens' spans.
struct SpanTrimming {
  // One space before a text's first token is the pre-tokenizer's, which stands for no character.
  bool has_prefix_space = false;
  // Comes behind a stage that adds special tokens: the first token of a text is not the first then.
  bool behind_special_tokens = false;
};

/// Immutable. Thread: any.
struct PostProcessor {
  SequenceTemplate single;               // has the first text once
  std::optional<SequenceTemplate> pair;  // has each text once; nullopt: pairs are not served
  std::vector<SpanTrimming> trimmings;   // in their order
};

/// No special tokens; a pair's types are 0 and 1, as the reference does without a post-processor.
PostProcessor PlainPostProcessor();
/// [CLS] A [SEP], and B [SEP] with type 1.
PostProcessor BertPostProcessor(int32_t cls, int32_t sep);
/// <s> A </s>, and </s> B </s>; every type is 0.
PostProcessor RobertaPostProcessor(int32_t cls, int32_t sep);

}  // namespace bouquet::text
