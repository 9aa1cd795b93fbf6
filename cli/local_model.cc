#include "cli/local_model.h"

#include <utility>
#include <vector>

#include "cli/core_start.h"
#include "ivy/dispatch/in_process_replica.h"

namespace bouquet::cli {
Result<std::unique_ptr<LocalModel>> LocalModel::Load(model::ModelFolder folder,
                                                     const LocalModelOptions& options,
                                                     Metrics& metrics, const Clock& clock) {
  std::unique_ptr<LocalModel> model(new LocalModel(std::move(folder)));
  ASSIGN_OR_RETURN(model->text_,
                   TextSide::Load(model->folder_, options.text_workers, metrics, clock));
  ASSIGN_OR_RETURN(model->core_, StartCore(model->folder_, options.engine, options.max_input_tokens,
                                           options.max_queue, metrics, clock));
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

}  // namespace bouquet::cli
