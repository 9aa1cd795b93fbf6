#include "cli/local_model.h"

#include <utility>
#include <vector>

#include "cli/core_start.h"
#include "cli/text_source.h"
#include "ivy/dispatch/in_process_replica.h"

namespace bouquet::cli {

Result<std::unique_ptr<LocalModel>> LocalModel::Load(const model::ModelFolder& folder,
                                                     const LocalModelOptions& options,
                                                     Metrics& metrics, const Clock& clock) {
  std::unique_ptr<LocalModel> model(new LocalModel());
  model->stage_ = std::make_unique<ivy::TokenizeStage>(TokenizeOptionsOf(options.text_workers),
                                                       metrics, folder.name, clock);
  ASSIGN_OR_RETURN(model->core_, StartCore(folder, options.engine, options.max_input_tokens,
                                           options.max_queue, metrics, clock));
  std::vector<std::unique_ptr<ivy::Replica>> replicas;
  replicas.push_back(std::make_unique<ivy::InProcessReplica>(*model->core_));
  ASSIGN_OR_RETURN(model->pool_,
                   ivy::ReplicaPool::Create(std::move(replicas), folder.name, metrics));
  return model;
}

LocalModel::~LocalModel() = default;

}  // namespace bouquet::cli
