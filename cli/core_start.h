#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "cli/engine_flags.h"
#include "model/model_folder.h"
#include "tulip/core.h"

namespace bouquet::cli {

/// Loads the engine of a folder and starts a core over it. `max_input_tokens` 0: the model's
/// maximum. `metrics` and `clock` must outlive it. Error: of Engine::Load and Core::Start.
Result<std::unique_ptr<tulip::Core>> StartCore(const model::ModelFolder& folder,
                                               const EngineFlags& flags, int32_t max_input_tokens,
                                               std::chrono::milliseconds max_queue,
                                               Metrics& metrics, const Clock& clock);

}  // namespace bouquet::cli
