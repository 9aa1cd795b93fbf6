#include "bench/null_model.h"

#include <utility>
#include <vector>

#include "ivy/dispatch/in_process_replica.h"
#include "testing/null_step_engine.h"

namespace bouquet::bench {

Result<std::unique_ptr<tulip::Core>> StartNullCore(const model::ModelFolder& folder,
                                                   std::unique_ptr<tulip::StepEngine> engine,
                                                   Metrics& metrics, const Clock& clock) {
  tulip::CoreOptions options;
  options.model_name = folder.name;
  options.identity = folder.identity;
  options.model_max_tokens = folder.max_input_tokens;
  return tulip::Core::Start(std::move(engine), options, metrics, clock);
}

Result<std::unique_ptr<NullModel>> NullModel::Load(const std::string& path, const Hooks& hooks,
                                                   Metrics& metrics, const Clock& clock) {
  ASSIGN_OR_RETURN(model::ModelFolder folder, model::ModelFolder::Open(path));
  std::unique_ptr<NullModel> model(new NullModel(std::move(folder)));
  const model::ModelFolder& opened = model->folder_;
  ASSIGN_OR_RETURN(
      std::shared_ptr<const text::TextPipeline> pipeline,
      text::TextPipeline::Load(opened.pipeline.transformer_folder, opened.do_lower_case));
  model->pipeline_ = std::move(pipeline);
  model->stage_ = std::make_unique<ivy::TokenizeStage>(ivy::TokenizeOptions{.num_threads = 1},
                                                       metrics, opened.name, clock);
  std::unique_ptr<tulip::StepEngine> engine =
      hooks.make_engine ? hooks.make_engine() : std::make_unique<testing::NullStepEngine>();
  ASSIGN_OR_RETURN(model->core_, StartNullCore(opened, std::move(engine), metrics, clock));
  std::unique_ptr<ivy::Replica> replica = std::make_unique<ivy::InProcessReplica>(*model->core_);
  std::vector<std::unique_ptr<ivy::Replica>> replicas;
  replicas.push_back(hooks.wrap_replica ? hooks.wrap_replica(std::move(replica))
                                        : std::move(replica));
  ASSIGN_OR_RETURN(model->pool_,
                   ivy::ReplicaPool::Create(std::move(replicas), opened.name, metrics));
  ASSIGN_OR_RETURN(model->encoder_, ivy::Encoder::Create({}, {.pipeline = model->pipeline_},
                                                         *model->stage_, *model->pool_));
  return model;
}

}  // namespace bouquet::bench
