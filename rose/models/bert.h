#pragma once

#include "rose/models/model.h"

namespace bouquet::rose {

/// BERT (Devlin et al. 2018): learned absolute positions and token types, LayerNorm after each
/// block, bidirectional attention, GELU. RoBERTa (Liu et al. 2019) and XLM-RoBERTa are the same
/// network with positions that start at row traits.position_offset. Error: as LoadModel.
Result<std::unique_ptr<Model>> LoadBert(const model::Traits& traits, WeightSet& weights,
                                        int32_t max_tokens, Backend& backend);

}  // namespace bouquet::rose
