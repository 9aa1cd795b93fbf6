#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "rose/backend/cuda/attention/attention_args.h"
#include "rose/backend/cuda/attention/attention_shape.h"
#include "rose/backend/cuda/device_memory.h"

namespace bouquet::rose::cuda {

/// Ragged attention with all lengths in device memory, so that a captured launch replays with other
/// lengths of the same padded configuration. Owns the plans that its kernels read. Launches only:
/// no call waits, and none allocates after Make.
class RaggedAttention {
 public:
  /// Memory for the largest step. `forced` names one kernel for everything ("" lets the chooser
  /// pick). Error: kInvalidArgument for a name that does not exist (lists those that do),
  /// kResourceExhausted for memory.
  static Result<std::unique_ptr<RaggedAttention>> Make(int32_t max_tokens, int32_t max_sequences,
                                                       std::string_view forced,
                                                       DeviceAllocator& allocator);
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
