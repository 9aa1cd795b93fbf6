#include "cli/text_source.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include "base/log.h"

namespace bouquet::cli {
namespace {

bool ExcludesPromptFromPooling(const model::ModelFolder& folder) {
  return std::any_of(folder.pipeline.modules.begin(), folder.pipeline.modules.end(),
                     [](const model::Module& module) {
                       const auto* pooling = std::get_if<model::PoolingModule>(&module);
                       return pooling != nullptr && !pooling->include_prompt;
                     });
}

/// Such models exist, and most texts have none of these tokens; one that has is refused when it
/// comes.
void WarnOfTokensWithoutRow(const model::ModelFolder& folder, const text::Tokenizer& tokenizer) {
  const int64_t num_rows = folder.traits.vocabulary_rows;
  if (tokenizer.vocabulary_size() > num_rows) {
    LogWarning(
        "{}: the tokenizer has ids up to {}, the embedding table ends at {}: texts with such "
        "tokens are refused, the first is \"{}\"",
        folder.name, tokenizer.vocabulary_size() - 1, num_rows - 1,
        tokenizer.Piece(static_cast<int32_t>(num_rows)));
  }
}

}  // namespace

Result<ivy::TextSource> LoadTextSource(const model::ModelFolder& folder) {
  ivy::TextSource source;
  source.exclude_prompt_from_pooling = ExcludesPromptFromPooling(folder);
  auto pipeline =
      text::TextPipeline::Load(folder.pipeline.transformer_folder, folder.do_lower_case);
  if (pipeline.ok()) {
    WarnOfTokensWithoutRow(folder, (*pipeline)->tokenizer());
    source.pipeline = std::move(pipeline).value();
  } else if (pipeline.code() == StatusCode::kUnimplemented) {
    source.no_text_reason = pipeline.status().message();
    LogWarning("{} takes token ids only: {}", folder.name, source.no_text_reason);
  } else {
    return pipeline.status();
  }
  return source;
}

ivy::TokenizeOptions TokenizeOptionsOf(int32_t workers) {
  const auto cores = static_cast<int32_t>(std::thread::hardware_concurrency());
  ivy::TokenizeOptions options;
  options.num_threads = workers > 0 ? workers : std::max(1, cores / 2);
  return options;
}

}  // namespace bouquet::cli
