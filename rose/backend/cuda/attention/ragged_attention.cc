#include "rose/backend/cuda/attention/ragged_attention.h"

#include <cuda_runtime.h>

#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "rose/backend/cuda/attention/chooser.h"
#include "rose/backend/cuda/attention/flashinfer_fa2.h"
#include "rose/backend/cuda/attention/flashinfer_fa3.h"
#include "rose/backend/cuda/attention/own_attention.h"
#include "rose/backend/cuda/attention/plan_kernel.h"
#include "rose/backend/cuda/attention/plan_lists.h"

namespace bouquet::rose::cuda {
namespace {

constexpr bool kFa3Built = BOUQUET_FA3 != 0;

/// Launches cannot be refused for a reason that the caller could handle: a failed one is a bug or
/// the end of the device.
void CheckLaunch(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess) {
    internal::CheckFailed(
        __FILE__, __LINE__, "launch",
        fmt::format("{}: {} ({})", what, cudaGetErrorName(error), cudaGetErrorString(error)));
  }
}

bool HasTensorCoreKernel(int32_t head_dim) {
  return head_dim == 32 || head_dim == 64 || head_dim == 128;
}

class PlannedAttention final : public RaggedAttention {
 public:
  PlannedAttention(int32_t max_tokens, int32_t max_sequences, AttentionFamily family)
      : limits_{max_sequences, max_tokens, max_tokens}, family_(family) {}

  Status Initialize(DeviceAllocator& allocator);

  Status CheckServed(const AttentionShape& shape) const override;
  void Plan(const AttentionShape& shape, const AttentionSizes& sizes,
            const int32_t* sequence_offsets, __nv_bfloat16* out, int64_t out_width,
            cudaStream_t stream) override;
  void Run(const AttentionShape& shape, const AttentionSizes& sizes, const AttentionArgs& args,
           cudaStream_t stream) override;
  std::string NameOf(const AttentionShape& shape, const AttentionSizes& sizes) const override {
    return cuda::NameOf(ChooseAttention(shape, sizes, family_, kFa3Built));
  }

 private:
  void CheckPlanned(const AttentionShape& shape, const AttentionSizes& sizes,
                    const AttentionArgs& args) const;

  const AttentionSizes limits_;
  const AttentionFamily family_;
  PlanLists lists_;
  AttentionPlan plan_;  // of the last planned step, like the next two
  AttentionSizes planned_sizes_;
  AttentionShape planned_shape_;
};

Status PlannedAttention::Initialize(DeviceAllocator& allocator) {
  RETURN_IF_ERROR(lists_.Allocate(limits_, allocator));
  if (const cudaError_t error = PrepareTensorCoreAttention(); error != cudaSuccess) {
    return Internal(fmt::format("attention could not be prepared: {}", cudaGetErrorString(error)));
  }
  return {};
}

Status PlannedAttention::CheckServed(const AttentionShape& shape) const {
  if (shape.num_kv_heads > 0 && shape.num_heads / shape.num_kv_heads > kMaxPlannedGroup) {
    return Unimplemented(fmt::format("attention serves up to {} query heads per kv head: {}",
                                     kMaxPlannedGroup, shape.num_heads / shape.num_kv_heads));
  }
  if (!IsServed(shape, family_, kFa3Built)) {
    return Unimplemented(fmt::format(
        "no attention kernel {}serves {} heads, {} kv heads, head size {}, window {}, {}: own has "
        "head sizes up to 256, fa2 and fa3 64 and 128 and no bias by distance, fa3 no window",
        family_ == AttentionFamily::kAuto ? "" : "that --attention allows ", shape.num_heads,
        shape.num_kv_heads, shape.head_dim, shape.window,
        shape.relative_bias ? "a bias by distance" : "no bias"));
  }
  return {};
}

void PlannedAttention::Plan(const AttentionShape& shape, const AttentionSizes& sizes,
                            const int32_t* sequence_offsets, __nv_bfloat16* out, int64_t out_width,
                            cudaStream_t stream) {
  CHECK_GT(sizes.num_sequences, 0);
  CHECK_LE(sizes.num_sequences, limits_.num_sequences);
  CHECK_GT(sizes.num_tokens, 0);
  CHECK_LE(sizes.num_tokens, limits_.num_tokens);
  CHECK_GT(sizes.longest_sequence, 0);
  planned_sizes_ = sizes;
  planned_shape_ = shape;
  plan_ = lists_.For(shape, sizes, family_);
  CheckLaunch(LaunchPlan({.sequence_offsets = sequence_offsets,
                          .num_sequences = sizes.num_sequences,
                          .num_tokens = sizes.num_tokens,
                          .group = shape.num_heads / shape.num_kv_heads,
                          .out = out,
                          .out_width = out_width},
                         plan_, stream),
              "attention plan");
}

void PlannedAttention::CheckPlanned(const AttentionShape& shape, const AttentionSizes& sizes,
                                    const AttentionArgs& args) const {
  CHECK(sizes == planned_sizes_);
  CHECK_EQ(shape.head_dim, planned_shape_.head_dim);
  CHECK_EQ(shape.num_heads / shape.num_kv_heads,
           planned_shape_.num_heads / planned_shape_.num_kv_heads);
  CHECK_EQ(shape.relative_bias, planned_shape_.relative_bias);
  CHECK_EQ(shape.relative_bias, args.relative_bias != nullptr);
  CHECK_GT(args.scale, 0);
  if (HasTensorCoreKernel(shape.head_dim)) {
    constexpr uintptr_t kAlignment = 16;
    for (const void* rows :
         {static_cast<const void*>(args.q), static_cast<const void*>(args.k),
          static_cast<const void*>(args.v), static_cast<const void*>(args.out)}) {
      CHECK_EQ(reinterpret_cast<uintptr_t>(rows) % kAlignment, 0U);
    }
    CHECK_EQ(args.row_stride * sizeof(__nv_bfloat16) % kAlignment, 0U);
  }
}

void PlannedAttention::Run(const AttentionShape& shape, const AttentionSizes& sizes,
                           const AttentionArgs& args, cudaStream_t stream) {
  CheckPlanned(shape, sizes, args);
  const AttentionChoice choice = ChooseAttention(shape, sizes, family_, kFa3Built);
  cudaError_t error = cudaErrorInvalidValue;
  switch (choice.kernel) {
    case AttentionKernel::kPlain:
      error = LaunchPlainAttention(shape, args, plan_.own, stream);
      break;
    case AttentionKernel::kTensorCore:
      error = LaunchTensorCoreAttention(shape, sizes, args, plan_.own, stream);
      break;
    case AttentionKernel::kFa2:
      error = LaunchFa2(shape, args, plan_, choice.tile_rows, stream);
      break;
    case AttentionKernel::kFa3:
      if constexpr (kFa3Built) {
        error = LaunchFa3(shape, sizes, args, plan_.fa3, choice.persistent, stream);
      }
      break;
  }
  CheckLaunch(error, cuda::NameOf(choice));
}

}  // namespace

Result<std::unique_ptr<RaggedAttention>> RaggedAttention::Make(int32_t max_tokens,
                                                               int32_t max_sequences,
                                                               std::string_view forced,
                                                               DeviceAllocator& allocator) {
  ASSIGN_OR_RETURN(const AttentionFamily family, ParseAttentionFamily(forced));
  if (family == AttentionFamily::kFa3 && !kFa3Built) {
    return InvalidArgument(
        "this build has no fa3 (BOUQUET_FA3=OFF): attention must be auto, own or fa2", "attention");
  }
  if (max_sequences < 1 || max_sequences > kMaxPlannedSequences) {
    return InvalidArgument(fmt::format("attention plans 1 to {} sequences a step: {}",
                                       kMaxPlannedSequences, max_sequences));
  }
  if (max_tokens < 1 || max_tokens > kMaxPlannedTokens) {
    return InvalidArgument(
        fmt::format("attention plans 1 to {} tokens a step: {}", kMaxPlannedTokens, max_tokens));
  }
  auto attention = std::make_unique<PlannedAttention>(max_tokens, max_sequences, family);
  RETURN_IF_ERROR(attention->Initialize(allocator));
  return std::unique_ptr<RaggedAttention>(std::move(attention));
}

}  // namespace bouquet::rose::cuda
