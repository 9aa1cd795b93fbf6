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

}  // namespace

Result<ivy::TextSource> LoadTextSource(const model::ModelFolder& folder) {
  ivy::TextSource source;
  source.exclude_prompt_from_pooling = ExcludesPromptFromPooling(folder);
  auto pipeline =
      text::TextPipeline::Load(folder.pipeline.transformer_folder, folder.do_lower_case);
  if (pipeline.ok()) {
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
