#include "cli/local_model.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "ivy/dispatch/in_process_replica.h"
#include "rose/engine.h"

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

Result<std::unique_ptr<LocalModel>> LocalModel::Load(model::ModelFolder folder,
                                                     const LocalModelOptions& options,
                                                     Metrics& metrics, const Clock& clock) {
  std::unique_ptr<LocalModel> model(new LocalModel(std::move(folder)));
  RETURN_IF_ERROR(model->LoadText(options, metrics, clock));
  RETURN_IF_ERROR(model->StartCore(options, metrics, clock));
  std::vector<std::unique_ptr<ivy::Replica>> replicas;
  replicas.push_back(std::make_unique<ivy::InProcessReplica>(*model->core_));
  ASSIGN_OR_RETURN(model->pool_,
                   ivy::ReplicaPool::Create(std::move(replicas), model->folder_.name, metrics));
  ivy::EncoderOptions encoder;
  encoder.max_tokens_per_request = options.max_tokens_per_request;
  encoder.max_input_tokens = options.max_input_tokens;
  model->encoder_ = std::make_unique<ivy::Encoder>(encoder, *model->tokenize_stage_, *model->pool_);
  return model;
}

LocalModel::~LocalModel() = default;

Status LocalModel::LoadText(const LocalModelOptions& options, Metrics& metrics,
                            const Clock& clock) {
  ivy::TextSource source;
  source.exclude_prompt_from_pooling = ExcludesPromptFromPooling(folder_);
  auto text = text::TextPipeline::Load(folder_.pipeline.transformer_folder, folder_.do_lower_case);
  if (text.ok()) {
    text_ = std::move(text).value();
    source.pipeline = text_.get();
  } else if (text.code() == StatusCode::kUnimplemented) {
    source.no_text_reason = text.status().message();
    LogWarning("{} takes token ids only: {}", folder_.name, source.no_text_reason);
  } else {
    return text.status();
  }
  ivy::TokenizeOptions tokenize;
  tokenize.num_threads = TextWorkers(options.text_workers);
  tokenize_stage_ = std::make_unique<ivy::TokenizeStage>(std::move(source), tokenize, metrics,
                                                         folder_.name, clock);
  return {};
}

Status LocalModel::StartCore(const LocalModelOptions& options, Metrics& metrics,
                             const Clock& clock) {
  rose::EngineOptions engine_options = options.engine.Options();
  ASSIGN_OR_RETURN(std::unique_ptr<rose::Engine> engine,
                   rose::Engine::Load(folder_, engine_options));
  tulip::CoreOptions core;
  core.model_name = folder_.name;
  core.identity = folder_.identity;
  core.model_max_tokens = folder_.max_input_tokens;
  core.max_input_tokens = options.max_input_tokens;
  core.step_tokens = options.engine.step_tokens;
  core.max_batch_sequences = options.engine.max_batch_sequences;
  core.max_queue = options.max_queue;
  ASSIGN_OR_RETURN(core_, tulip::Core::Start(std::move(engine), core, metrics, clock));
  return {};
}

}  // namespace bouquet::cli
