#include "cli/core_start.h"

#include <utility>

#include "rose/engine.h"

namespace bouquet::cli {

Result<std::unique_ptr<tulip::Core>> StartCore(const model::ModelFolder& folder,
                                               const EngineFlags& flags, int32_t max_input_tokens,
                                               std::chrono::milliseconds max_queue,
                                               Metrics& metrics, const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<rose::Engine> engine,
                   rose::Engine::Load(folder, flags.Options()));
  tulip::CoreOptions options;
  options.model_name = folder.name;
  options.identity = folder.identity;
  options.model_max_tokens = folder.max_input_tokens;
  options.max_input_tokens = max_input_tokens;
  options.step_tokens = flags.step_tokens;
  options.max_batch_sequences = flags.max_batch_sequences;
  options.max_queue = max_queue;
  return tulip::Core::Start(std::move(engine), options, metrics, clock);
}

}  // namespace bouquet::cli
