#include "cli/local_model.h"

#include <utility>
#include <vector>

#include "ivy/dispatch/in_process_replica.h"
#include "rose/engine.h"

namespace bouquet::cli {
Result<std::unique_ptr<LocalModel>> LocalModel::Load(model::ModelFolder folder,
                                                     const LocalModelOptions& options,
                                                     Metrics& metrics, const Clock& clock) {
  std::unique_ptr<LocalModel> model(new LocalModel(std::move(folder)));
  ASSIGN_OR_RETURN(model->text_,
                   TextSide::Load(model->folder_, options.text_workers, metrics, clock));
  RETURN_IF_ERROR(model->StartCore(options, metrics, clock));
  std::vector<std::unique_ptr<ivy::Replica>> replicas;
  replicas.push_back(std::make_unique<ivy::InProcessReplica>(*model->core_));
  ASSIGN_OR_RETURN(model->pool_,
                   ivy::ReplicaPool::Create(std::move(replicas), model->folder_.name, metrics));
  ivy::EncoderOptions encoder;
  encoder.max_tokens_per_request = options.max_tokens_per_request;
  encoder.max_input_tokens = options.max_input_tokens;
  model->encoder_ = std::make_unique<ivy::Encoder>(encoder, model->text_->stage(), *model->pool_);
  return model;
}

LocalModel::~LocalModel() = default;

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
