#pragma once

#include <memory>

#include "rose/backend/backend.h"
#include "rose/layers/activations.h"

namespace bouquet::rose {

/// x ← x + Down(act(Up(norm(x)))), in place on the hidden states; with a gated `up`,
/// act(gate) · up. The norm in front is absent in networks that normalise afterwards.
struct Mlp {
  std::unique_ptr<PackedWeight> up;    // hidden -> intermediate, activation (and gating) included
  std::unique_ptr<PackedWeight> down;  // intermediate -> hidden

  void AddTo(const Activations& step, const NormDesc& norm_before, Backend& backend) const {
    backend.Gemm({.weight = up.get(), .prologue = norm_before, .residual = {}}, step.hidden,
                 step.intermediate);
    backend.Gemm({.weight = down.get(), .residual = step.hidden}, step.intermediate, step.hidden);
  }
};

}  // namespace bouquet::rose
