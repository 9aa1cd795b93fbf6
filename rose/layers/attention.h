#pragma once

#include <memory>

#include "rose/backend/backend.h"
#include "rose/layers/activations.h"

namespace bouquet::rose {

/// x ← x + O(attention(QKV(norm(x)))), in place on the hidden states. The norm in front is absent
/// in networks that normalise afterwards.
struct SelfAttention {
  std::unique_ptr<PackedWeight> qkv;     // hidden -> queries, keys, values side by side
  std::unique_ptr<PackedWeight> output;  // context -> hidden
  AttentionDesc desc;

  void AddTo(const Activations& step, const StepInputs& inputs, const NormDesc& norm_before,
             Backend& backend) const {
    backend.Gemm({.weight = qkv.get(), .prologue = norm_before, .residual = {}}, step.hidden,
                 step.qkv);
    backend.Attention(desc, inputs, step.qkv, step.context);
    backend.Gemm({.weight = output.get(), .residual = step.hidden}, step.context, step.hidden);
  }
};

}  // namespace bouquet::rose
