#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

/// What the choice of a kernel may depend on: the network's side.
struct AttentionShape {
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  AttentionMask mask = AttentionMask::kBidirectional;
  int32_t window = 0;  // 0: whole sequence; w > 0: only |i − j| ≤ w
};

/// And the step's side, as the host knows it: sizes of the padded configuration.
struct AttentionSizes {
  int32_t num_sequences = 0;     // those above the real count have length 0
  int32_t num_tokens = 0;        // rows of q, k, v and out
  int32_t longest_sequence = 0;  // an upper bound
};

/// One launch. q, k and v may lie side by side in one matrix. Elements are bfloat16.
struct AttentionArgs {
  const __nv_bfloat16* q = nullptr;  // [num_tokens, num_heads, head_dim], rows `row_stride` apart
  const __nv_bfloat16* k = nullptr;  // [num_tokens, num_kv_heads, head_dim], likewise
  const __nv_bfloat16* v = nullptr;
  int64_t row_stride = 0;        // in elements, of q, k and v
  __nv_bfloat16* out = nullptr;  // [num_tokens, num_heads · head_dim], dense
  const int32_t* sequence_offsets = nullptr;  // device, [num_sequences + 1]; after the last real
                                              // sequence its end is repeated
  float scale = 0;
};

/// Ragged attention with all lengths in device memory, so that a captured launch replays with other
/// lengths of the same padded configuration. Owns the plans that its kernels read. Launches only:
/// no call waits, and none allocates after Make.
class RaggedAttention {
 public:
  /// Memory for the largest step. `forced` names one kernel for everything ("" lets the chooser
  /// pick). Error: kInvalidArgument for a name that does not exist (lists those that do),
  /// kResourceExhausted for memory.
  static Result<std::unique_ptr<RaggedAttention>> Make(int32_t max_tokens, int32_t max_sequences,
                                                       std::string_view forced);
  virtual ~RaggedAttention() = default;

  /// Error: kUnimplemented for a shape that no kernel (or not the forced one) serves. Called while
  /// loading, once per kind of layer.
  virtual Status CheckServed(const AttentionShape& shape) const = 0;

  /// The first launch of a step, before any Run: work lists from the offsets, and zeros in the rows
  /// of `out` after the last real token (rows of a padded step must be finite). `out` is
  /// [num_tokens, out_width] and is what every Run of the step writes.
  virtual void Plan(const AttentionShape& shape, const AttentionSizes& sizes,
                    const int32_t* sequence_offsets, __nv_bfloat16* out, int64_t out_width,
                    cudaStream_t stream) = 0;
  virtual void Run(const AttentionShape& shape, const AttentionSizes& sizes,
                   const AttentionArgs& args, cudaStream_t stream) = 0;

  /// The kernel that Run would take: "fa3_128", ….
  virtual std::string NameOf(const AttentionShape& shape, const AttentionSizes& sizes) const = 0;
};

}  // namespace bouquet::rose::cuda
