#pragma once

#include <cstdint>

#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

/// What the choice of a kernel may depend on: the network's side.
struct AttentionShape {
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  AttentionMask mask = AttentionMask::kBidirectional;
  int32_t window = 0;          // 0: whole sequence; w > 0: only |i − j| ≤ w
  bool relative_bias = false;  // scores get a bias by distance: own kernels only
};

/// And the step's side, as the host knows it: sizes of the padded configuration.
struct AttentionSizes {
  int32_t num_sequences = 0;     // those above the real count have length 0
  int32_t num_tokens = 0;        // rows of q, k, v and out
  int32_t longest_sequence = 0;  // an upper bound
  bool operator==(const AttentionSizes&) const = default;
};

}  // namespace bouquet::rose::cuda
