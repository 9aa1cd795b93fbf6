#pragma once

#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"

namespace bouquet::text {

// The parts "normalizer", "pre_tokenizer" and "post_processor" of a tokenizer.json, a Sequence laid
// flat. `root` is the whole file; an absent or null part is no stage. Error: kInvalidArgument
// naming the key; kUnimplemented naming the stage.

Result<std::vector<NormalizerStage>> ParseNormalizer(const JsonObject& root);
Result<std::vector<PreTokenizerStage>> ParsePreTokenizer(const JsonObject& root);
Result<PostProcessor> ParsePostProcessor(const JsonObject& root);

}  // namespace bouquet::text
