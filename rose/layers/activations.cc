#include "rose/layers/activations.h"

namespace bouquet::rose {

Result<ActivationArena> ActivationArena::Allocate(const ActivationWidths& widths,
                                                  int32_t max_tokens, Backend& backend) {
  ActivationArena arena;
  const Dtype dtype = backend.compute_dtype();
  ASSIGN_OR_RETURN(arena.hidden_, backend.Allocate(dtype, max_tokens, widths.hidden));
  ASSIGN_OR_RETURN(arena.qkv_, backend.Allocate(dtype, max_tokens, widths.qkv));
  ASSIGN_OR_RETURN(arena.context_, backend.Allocate(dtype, max_tokens, widths.context));
  ASSIGN_OR_RETURN(arena.intermediate_, backend.Allocate(dtype, max_tokens, widths.intermediate));
  return arena;
}

Activations ActivationArena::ForStep(int32_t num_tokens) const {
  return {hidden_.view().Rows(0, num_tokens), qkv_.view().Rows(0, num_tokens),
          context_.view().Rows(0, num_tokens), intermediate_.view().Rows(0, num_tokens)};
}

}  // namespace bouquet::rose
