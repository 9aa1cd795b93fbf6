#pragma once

#include "rose/models/model.h"

namespace bouquet::rose {

/// BERT (Devlin et al. 2018): learned absolute positions and token types, LayerNorm after each
/// block, bidirectional attention, GELU. Its kin are the same network: RoBERTa (Liu et al. 2019)
/// and XLM-RoBERTa with positions that start at row traits.position_offset; DistilBERT (Sanh et al.
/// 2019) without token types; MPNet (Song et al. 2020) with both, and with a bias by distance that
/// all layers share. Error: as LoadModel.
Result<std::unique_ptr<Model>> LoadBert(const model::Traits& traits, WeightSet& weights,
                                        int32_t max_tokens, Backend& backend);

}  // namespace bouquet::rose
