#include "cli/text_side.h"

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

int32_t TextWorkers(int32_t wanted) {
  const auto cores = static_cast<int32_t>(std::thread::hardware_concurrency());
  return wanted > 0 ? wanted : std::max(1, cores / 2);
}

}  // namespace

Result<std::unique_ptr<TextSide>> TextSide::Load(const model::ModelFolder& folder, int32_t workers,
                                                 Metrics& metrics, const Clock& clock) {
  auto side = std::make_unique<TextSide>();
  ivy::TextSource source;
  source.exclude_prompt_from_pooling = ExcludesPromptFromPooling(folder);
  auto pipeline =
      text::TextPipeline::Load(folder.pipeline.transformer_folder, folder.do_lower_case);
  if (pipeline.ok()) {
    side->pipeline_ = std::move(pipeline).value();
    source.pipeline = side->pipeline_.get();
  } else if (pipeline.code() == StatusCode::kUnimplemented) {
    source.no_text_reason = pipeline.status().message();
    LogWarning("{} takes token ids only: {}", folder.name, source.no_text_reason);
  } else {
    return pipeline.status();
  }
  ivy::TokenizeOptions tokenize;
  tokenize.num_threads = TextWorkers(workers);
  side->stage_ = std::make_unique<ivy::TokenizeStage>(std::move(source), tokenize, metrics,
                                                      folder.name, clock);
  return side;
}

}  // namespace bouquet::cli
