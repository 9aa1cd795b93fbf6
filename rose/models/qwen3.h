#pragma once

#include "rose/models/model.h"

namespace bouquet::rose {

/// Qwen3 (Yang et al. 2025): RMSNorm before each block and at the end, RMSNorm per head on queries
/// and keys, rotary positions, grouped-query attention, SwiGLU; causal, or bidirectional as the
/// config says. Error: as LoadModel.
Result<std::unique_ptr<Model>> LoadQwen3(const model::Traits& traits, WeightSet& weights,
                                         int32_t max_tokens, Backend& backend);

}  // namespace bouquet::rose
