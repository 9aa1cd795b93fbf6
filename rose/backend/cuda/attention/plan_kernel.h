#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rose/backend/cuda/attention/attention_plan.h"

namespace bouquet::rose::cuda {

/// What the planner reads and, beside the lists, writes.
struct PlanArgs {
  const int32_t* sequence_offsets = nullptr;  // device, [num_sequences + 1]
  int32_t num_sequences = 0;                  // ≤ kMaxPlannedSequences
  int32_t num_tokens = 0;
  int32_t group = 1;             // heads that share a tile of the grouped lists
  __nv_bfloat16* out = nullptr;  // [num_tokens, out_width]: rows after the last real token become 0
  int64_t out_width = 0;
};

/// Fills all entries of the lists of `plan` (those past the last tile are invalid).
cudaError_t LaunchPlan(const PlanArgs& args, const AttentionPlan& plan, cudaStream_t stream);

}  // namespace bouquet::rose::cuda
