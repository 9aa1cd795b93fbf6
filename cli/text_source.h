#pragma once

#include <cstdint>

#include "base/status.h"
#include "ivy/encode/tokenize_stage.h"
#include "model/model_folder.h"

namespace bouquet::cli {

/// Reads the tokenizer of a model folder. One of a kind that is not served is a warning: then the
/// model takes token ids only. Error: of TextPipeline::Load.
Result<ivy::TextSource> LoadTextSource(const model::ModelFolder& folder);

/// `workers` 0: one for every two cores.
ivy::TokenizeOptions TokenizeOptionsOf(int32_t workers);

}  // namespace bouquet::cli
