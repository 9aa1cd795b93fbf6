// The ops of CudaBackend: shapes are checked, kernels picked and launched on the current stream.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "rose/backend/cuda/cuda_backend.h"
#include "rose/backend/cuda/kernels/activation.h"
#include "rose/backend/cuda/kernels/norm.h"
#include "rose/backend/cuda/kernels/pooling.h"
#include "rose/backend/cuda/kernels/rotary.h"
#include "rose/backend/cuda/kernels/rows.h"

namespace bouquet::rose::cuda {
namespace {

const __nv_bfloat16* Data(TensorView view) { return view.as<const __nv_bfloat16>(); }

void CheckSameShape(TensorView a, TensorView b) {
  CHECK_EQ(a.rows, b.rows);
  CHECK_EQ(a.cols, b.cols);
}

}  // namespace

void CudaBackend::Embed(const EmbeddingDesc& desc, const StepInputs& inputs, TensorView out) {
  CheckInStep();
  CHECK_EQ(out.rows, inputs.num_tokens);
  CHECK_EQ(out.cols, desc.word.cols);
  CHECK(desc.position.empty() || desc.position.cols == out.cols);
  CHECK(desc.token_type.empty() || desc.token_type.cols == out.cols);
  CHECK(desc.norm_kind == NormKind::kNone || desc.norm.gain.cols == out.cols);
  if (!CanNormalise(out.cols)) {
    return;
  }
  LaunchEmbed({.token_ids = inputs.token_ids,
               .positions = inputs.positions,
               .token_type_ids = inputs.token_type_ids,
               .word = Data(desc.word),
               .position = Data(desc.position),
               .token_type = Data(desc.token_type),
               .position_offset = desc.position_offset,
               .out = out.as<__nv_bfloat16>(),
               .out_stride = out.row_stride,
               .tokens = out.rows,
               .width = out.cols,
               .kind = desc.norm_kind,
               .gain = desc.norm.gain.as<const float>(),
               .bias = desc.norm.bias.as<const float>(),
               .epsilon = desc.norm.epsilon},
              current_);
}

void CudaBackend::Norm(const NormDesc& desc, TensorView x, TensorView residual, TensorView sum,
                       TensorView out) {
  CheckInStep();
  CHECK(desc.kind != NormKind::kNone);
  CheckSameShape(x, out);
  CHECK_EQ(desc.weights.gain.cols, x.cols);
  CHECK(desc.weights.bias.empty() || desc.weights.bias.cols == x.cols);
  if (!residual.empty()) {
    CheckSameShape(x, residual);
  }
  if (!sum.empty()) {
    CheckSameShape(x, sum);
  }
  if (!CanNormalise(x.cols)) {
    return;
  }
  LaunchNorm({.x = Data(x),
              .x_stride = x.row_stride,
              .residual = Data(residual),
              .residual_stride = residual.row_stride,
              .sum = sum.as<__nv_bfloat16>(),
              .sum_stride = sum.row_stride,
              .out = out.as<__nv_bfloat16>(),
              .out_stride = out.row_stride,
              .rows = x.rows,
              .width = x.cols,
              .kind = desc.kind,
              .gain = desc.weights.gain.as<const float>(),
              .bias = desc.weights.bias.as<const float>(),
              .epsilon = desc.weights.epsilon},
             current_);
}

void CudaBackend::Gemm(const GemmDesc& desc, TensorView x, TensorView out) {
  CheckInStep();
  const auto& weight = static_cast<const PackedMatrix&>(*desc.weight);
  CHECK(weight.dtype() == Dtype::kBfloat16);
  CHECK_EQ(x.cols, weight.in_features);
  CHECK_EQ(out.cols, weight.out_features);
  CHECK_EQ(x.rows, out.rows);
  const bool has_residual = !desc.residual.empty();
  if (has_residual) {
    CheckSameShape(desc.residual, out);
  }
  if (desc.prologue.kind != NormKind::kNone) {
    const TensorView normed = Scratch(&normed_, x.rows, x.cols);
    if (normed.empty()) {
      return;
    }
    Norm(desc.prologue, x, {}, {}, normed);
    x = normed;
  }
  // The product goes where it stays, or, gated, to a place of twice the width.
  const bool has_epilogue = weight.gated() || weight.activation() != Activation::kNone;
  TensorView product = out;
  if (weight.gated()) {
    product = Scratch(&product_, x.rows, weight.product_width());
    if (product.empty()) {
      return;
    }
  }
  const bool adds_residual = has_residual && !has_epilogue;
  CHECK(!has_residual || !has_epilogue || weight.gated() || desc.residual.data != out.data);
  CHECK(!adds_residual || desc.residual.row_stride == product.row_stride);
  gemm_->Run({.rows = x.rows,
              .out_features = weight.product_width(),
              .in_features = weight.in_features,
              .x_stride = x.row_stride,
              .weight_stride = weight.stride(),
              .out_stride = product.row_stride,
              .has_bias = weight.bias<__nv_bfloat16>() != nullptr,
              .adds_residual = adds_residual},
             {.x = Data(x),
              .weight = weight.weight<__nv_bfloat16>(),
              .bias = weight.bias<__nv_bfloat16>(),
              .residual = Data(desc.residual),
              .out = product.as<__nv_bfloat16>()},
             current_);
  if (has_epilogue) {
    LaunchActivation({.in = Data(product),
                      .in_stride = product.row_stride,
                      .residual = Data(desc.residual),
                      .residual_stride = desc.residual.row_stride,
                      .out = out.as<__nv_bfloat16>(),
                      .out_stride = out.row_stride,
                      .rows = out.rows,
                      .width = out.cols,
                      .activation = weight.activation(),
                      .gated = weight.gated()},
                     current_);
  }
}

const float2* CudaBackend::Rotations(const AttentionDesc& desc, const StepInputs& inputs) {
  const auto found = std::find_if(rotations_.begin(), rotations_.end(), [&](const Rotation& one) {
    return one.theta == desc.rope.theta && one.head_dim == desc.head_dim;
  });
  Rotation& rotation = found != rotations_.end() ? *found : rotations_.emplace_back();
  const int64_t half = desc.head_dim / 2;
  if (rotation.values.empty()) {
    Result<Tensor> memory = Allocate(Dtype::kFloat32, largest_.num_tokens, 2 * half);
    if (!memory.ok()) {
      step_status_ = memory.status();
      rotations_.pop_back();
      return nullptr;
    }
    rotation = {desc.rope.theta, desc.head_dim, std::move(memory).value(), /*step=*/-1};
  }
  auto* values = rotation.values.view().as<float2>();
  if (rotation.step != step_) {
    rotation.step = step_;
    RotationsArgs args;
    args.rotations = values;
    args.positions = inputs.positions;
    args.tokens = inputs.num_tokens;
    args.head_dim = desc.head_dim;
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = 2.0 * static_cast<double>(i) / desc.head_dim;
      args.frequencies[i] =
          static_cast<float>(1.0 / std::pow(static_cast<double>(desc.rope.theta), exponent));
    }
    LaunchRotations(args, current_);
  }
  return values;
}

void CudaBackend::RotateHeads(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv) {
  RotaryArgs args;
  args.qkv = qkv.as<__nv_bfloat16>();
  args.row_stride = qkv.row_stride;
  args.tokens = qkv.rows;
  args.num_heads = desc.num_heads;
  args.num_kv_heads = desc.num_kv_heads;
  args.head_dim = desc.head_dim;
  args.query_gain = desc.query_norm.gain.as<const float>();
  args.key_gain = desc.key_norm.gain.as<const float>();
  args.query_epsilon = desc.query_norm.epsilon;
  args.key_epsilon = desc.key_norm.epsilon;
  if (desc.rope.enabled) {
    args.rotations = Rotations(desc, inputs);
    if (args.rotations == nullptr) {
      return;
    }
  }
  LaunchRotary(args, current_);
}

Status CudaBackend::CheckServed(const AttentionShape& shape, bool rotates) const {
  if (rotates && !CanRotate(shape.head_dim)) {
    return Unimplemented(
        fmt::format("on a CUDA device a rotated or normalised head must have a multiple of 4 "
                    "elements, above 128 of 8, at most {}: {}",
                    kMaxRotaryHeadDim, shape.head_dim));
  }
  return attention_->CheckServed(shape);
}

bool CudaBackend::CanNormalise(int64_t width) {
  if (width > kMaxNormWidth) {
    step_status_ = Unimplemented(fmt::format(
        "on a CUDA device a normalised row has at most {} elements: {}", kMaxNormWidth, width));
    return false;
  }
  return true;
}

void CudaBackend::Attention(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
                            TensorView out) {
  CheckInStep();
  const int64_t query_width = int64_t{desc.num_heads} * desc.head_dim;
  const int64_t key_width = int64_t{desc.num_kv_heads} * desc.head_dim;
  CHECK_EQ(qkv.rows, inputs.num_tokens);
  CHECK_EQ(qkv.cols, query_width + 2 * key_width);
  CHECK_EQ(out.rows, qkv.rows);
  CHECK_EQ(out.cols, query_width);
  CHECK_EQ(out.row_stride, out.cols);
  const bool rotates = desc.rope.enabled || !desc.query_norm.empty() || !desc.key_norm.empty();
  const AttentionShape shape{.num_heads = desc.num_heads,
                             .num_kv_heads = desc.num_kv_heads,
                             .head_dim = desc.head_dim,
                             .mask = desc.mask,
                             .window = desc.window,
                             .relative_bias = !desc.relative_bias.empty()};
  const AttentionSizes sizes{.num_sequences = inputs.num_sequences,
                             .num_tokens = inputs.num_tokens,
                             .longest_sequence = inputs.longest_sequence};
  if (Status served = CheckServed(shape, rotates); !served.ok()) {
    step_status_ = std::move(served);
    return;
  }
  if (rotates) {
    RotateHeads(desc, inputs, qkv);
  }
  if (!has_plan_) {
    attention_->Plan(shape, sizes, inputs.sequence_offsets, out.as<__nv_bfloat16>(), out.cols,
                     current_);
    has_plan_ = true;
  }
  attention_->Run(shape, sizes,
                  {.q = Data(qkv),
                   .k = Data(qkv) + query_width,
                   .v = Data(qkv) + query_width + key_width,
                   .row_stride = qkv.row_stride,
                   .out = out.as<__nv_bfloat16>(),
                   .sequence_offsets = inputs.sequence_offsets,
                   .scale = desc.scale,
                   .relative_bias = desc.relative_bias.AtZero(desc.num_heads),
                   .relative_bias_stride = desc.relative_bias.table.row_stride,
                   .max_distance = desc.relative_bias.max_distance()},
                  current_);
}

void CudaBackend::Pool(const PoolingDesc& desc, const StepInputs& inputs, TensorView hidden,
                       TensorView out) {
  CheckInStep();
  const auto modes = static_cast<int64_t>(desc.modes.size());
  CHECK_EQ(hidden.rows, inputs.num_tokens);
  CHECK(out.dtype == Dtype::kFloat32);
  CHECK_EQ(out.rows, inputs.num_rows);
  CHECK_EQ(out.cols, modes * hidden.cols);
  PoolingArgs args;
  args.hidden = Data(hidden);
  args.hidden_stride = hidden.row_stride;
  args.ranges = inputs.pooling_ranges;
  args.out = out.as<float>();
  args.out_stride = out.row_stride;
  args.rows = out.rows;
  args.width = hidden.cols;
  args.num_modes = static_cast<int32_t>(modes);
  CHECK_LE(modes, kMaxPoolingModes);
  std::copy(desc.modes.begin(), desc.modes.end(), args.modes);
  LaunchPooling(args, current_);
}

void CudaBackend::GemmRows(const GemmDesc& desc, TensorView x, TensorView out) {
  CheckInStep();
  const auto& weight = static_cast<const PackedMatrix&>(*desc.weight);
  CHECK(weight.dtype() == Dtype::kFloat32 && x.dtype == Dtype::kFloat32 &&
        out.dtype == Dtype::kFloat32);
  CHECK(!weight.gated() && desc.prologue.kind == NormKind::kNone);
  CHECK_EQ(x.cols, weight.in_features);
  CHECK_EQ(out.cols, weight.out_features);
  CHECK_EQ(x.rows, out.rows);
  LaunchGemmRows({.x = x.as<const float>(),
                  .x_stride = x.row_stride,
                  .weight = weight.weight<float>(),
                  .weight_stride = weight.stride(),
                  .bias = weight.bias<float>(),
                  .residual = desc.residual.as<const float>(),
                  .residual_stride = desc.residual.row_stride,
                  .out = out.as<float>(),
                  .out_stride = out.row_stride,
                  .rows = x.rows,
                  .in_features = weight.in_features,
                  .out_features = weight.out_features,
                  .activation = weight.activation()},
                 current_);
}

void CudaBackend::NormalizeRows(TensorView x) {
  CheckInStep();
  CHECK(x.dtype == Dtype::kFloat32);
  LaunchNormalizeRows(x.as<float>(), x.row_stride, x.rows, x.cols, current_);
}

void CudaBackend::FinishRows(const StepInputs& inputs, TensorView x) {
  CheckInStep();
  CHECK(x.dtype == Dtype::kFloat32);
  CHECK_EQ(x.rows, inputs.num_rows);
  const size_t offset = RowsOffset(max_rows_);
  if (x.cols > result_width_) {
    const size_t bytes = static_cast<size_t>(largest_.num_rows) *
                         RowBytes(model::RowDtype::kFloat32, static_cast<size_t>(x.cols));
    Result<DeviceMemory> memory = allocator_.Allocate(offset + bytes, "the rows of a step");
    if (!memory.ok()) {
      step_status_ = memory.status();
      return;
    }
    results_ = std::move(memory).value();
  }
  result_width_ = x.cols;
  LaunchFinishRows({.x = x.as<const float>(),
                    .x_stride = x.row_stride,
                    .dimensions = inputs.dimensions,
                    .dtypes = inputs.row_dtypes,
                    .normalize = inputs.normalize,
                    .slots = results_.get() + offset,
                    .statuses = reinterpret_cast<RowStatus*>(results_.get()),
                    .rows = x.rows,
                    .width = x.cols},
                   current_);
}

}  // namespace bouquet::rose::cuda
