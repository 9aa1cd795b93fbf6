#pragma once

#include <cstdint>

#include "base/status.h"
#include "rose/backend/backend.h"

namespace bouquet::rose {

/// The widths of a network's intermediate results, which all its layers share.
struct ActivationWidths {
  int64_t hidden = 0;
  int64_t qkv = 0;           // (num_heads + 2 · num_kv_heads) · head_dim
  int64_t context = 0;       // num_heads · head_dim
  int64_t intermediate = 0;  // of the MLP, after gating
};

/// Views of one step's intermediate results, in the compute dtype.
struct Activations {
  TensorView hidden;        // [num_tokens, hidden]
  TensorView qkv;           // [num_tokens, qkv]
  TensorView context;       // [num_tokens, context]: what attention gives
  TensorView intermediate;  // [num_tokens, intermediate]
};

/// Memory for the intermediate results of the largest step, allocated once. Pages that no step
/// needed stay untouched, so a large limit costs address space only.
class ActivationArena {
 public:
  static Result<ActivationArena> Allocate(const ActivationWidths& widths, int32_t max_tokens,
                                          Backend& backend);
  Activations ForStep(int32_t num_tokens) const;

 private:
  Tensor hidden_, qkv_, context_, intermediate_;
};

}  // namespace bouquet::rose
