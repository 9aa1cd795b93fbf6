#include "rose/backend/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/kernels/activation.h"
#include "rose/backend/cuda/kernels/norm.h"
#include "rose/backend/cuda/kernels/pooling.h"
#include "rose/backend/cuda/kernels/rotary.h"
#include "rose/backend/cuda/kernels/rows.h"
#include "rose/backend/cuda/step_memory.h"
#include "rose/tensor/convert.h"

namespace bouquet::rose::cuda {
namespace {

// Raise when a kernel changes the last bits of a result.
constexpr int kKernelVersion = 1;
// Captured steps kept at once. A step of a 28-layer network has some 300 nodes.
constexpr size_t kMaxGraphs = 128;
// Products are measured up to as many rows; beyond, the algorithm of the largest is taken.
constexpr int32_t kMostMeasuredTokens = 8192;
constexpr int64_t kMaxElements = int64_t{1} << 40;
// A step that ends soon is waited for without giving up the core, since waking up takes as long: so
// many looks of about a microsecond each.
constexpr int kLooks = 50;

const __nv_bfloat16* Data(TensorView view) { return view.as<const __nv_bfloat16>(); }

void CheckSameShape(TensorView a, TensorView b) {
  CHECK_EQ(a.rows, b.rows);
  CHECK_EQ(a.cols, b.cols);
}

}  // namespace

class CudaBackend::Ticket final : public StepTicket {
 public:
  static Result<std::unique_ptr<Ticket>> Make(size_t input_bytes) {
    auto ticket = std::make_unique<Ticket>();
    ASSIGN_OR_RETURN(ticket->done, Event::Create());
    ASSIGN_OR_RETURN(ticket->inputs, AllocatePinned(input_bytes));
    return ticket;
  }

  bool IsReady() const override { return done.IsReady(); }

  Status Wait() override {
    for (int look = 0; look < kLooks; ++look) {
      if (done.IsReady()) {
        return status;
      }
    }
    done.Wait();
    return status;
  }

  Event done;           // everything of the step, its copies included
  PinnedMemory inputs;  // what the step's copy in reads; free again after `done`
  Status status;
};

CudaBackend::CudaBackend(const BackendOptions& options, DeviceFacts device)
    : options_(options),
      device_(std::move(device)),
      device_name_(fmt::format("cuda:{}", device_.index)),
      allocator_(options.memory_fraction),
      graphs_(kMaxGraphs, options.graphs == GraphMode::kStartup) {}

CudaBackend::~CudaBackend() {
  if (stream_.get() != nullptr) {
    cudaStreamSynchronize(stream_.get());
  }
}

Result<std::unique_ptr<Backend>> CudaBackend::Make(const BackendOptions& options) {
  ASSIGN_OR_RETURN(DeviceFacts device, OpenDevice(options.device));
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options, std::move(device)));
  RETURN_IF_ERROR(backend->Start());
  return std::unique_ptr<Backend>(std::move(backend));
}

Status CudaBackend::Start() {
  ASSIGN_OR_RETURN(stream_, Stream::Create());
  ASSIGN_OR_RETURN(capture_stream_, Stream::Create());
  ASSIGN_OR_RETURN(gemm_, cuda::Gemm::Make(device_.name, allocator_));
  return {};
}

std::string CudaBackend::description() const {
  return fmt::format("{}, {}, {} SMs, {:.0f} GiB", device_name_, device_.name,
                     device_.multiprocessors,
                     static_cast<double>(device_.memory_bytes) / (1024.0 * 1024.0 * 1024.0));
}

std::string CudaBackend::numerics() const {
  return fmt::format("cuda kernels {}, {}, {}, attention {}", kKernelVersion, device_.name,
                     gemm_->version(), options_.attention);
}

GraphCounts CudaBackend::graph_counts() const { return graphs_.counts(); }

// --- loading ---

StepSizes CudaBackend::LargestStep(int32_t max_tokens, int32_t max_sequences) const {
  const StepSizes sizes{.num_tokens = max_tokens,
                        .num_sequences = max_sequences,
                        .longest_sequence = max_tokens,
                        .has_token_types = true};
  return options_.pad_steps ? PadStep(sizes) : sizes;
}

Result<Tensor> CudaBackend::Allocate(Dtype dtype, int64_t rows, int64_t cols) {
  if (rows < 0 || cols < 0 || (cols > 0 && rows > kMaxElements / cols)) {
    return InvalidArgument(fmt::format("a tensor's shape is out of range: [{}, {}]", rows, cols));
  }
  const size_t bytes = static_cast<size_t>(rows * cols) * DtypeBytes(dtype);
  ASSIGN_OR_RETURN(DeviceMemory memory,
                   allocator_.Allocate(
                       bytes, fmt::format("a tensor [{}, {}] {}", rows, cols, DtypeName(dtype))));
  return Tensor({memory.release(), dtype, rows, cols, cols}, bytes,
                [](void* data, size_t /*bytes*/) { cudaFree(data); });
}

Result<HostMemory> CudaBackend::AllocateHost(size_t bytes) {
  ASSIGN_OR_RETURN(PinnedMemory memory, AllocatePinned(bytes));
  return HostMemory(memory.release(), [](std::byte* data) { cudaFreeHost(data); });
}

Status CudaBackend::NeedUpload() {
  if (upload_ == nullptr) {
    ASSIGN_OR_RETURN(upload_, WeightUpload::Make(allocator_, stream_.get()));
  }
  return {};
}

Result<Tensor> CudaBackend::Upload(const HostTensor& source, Dtype dtype) {
  if (!CanConvert(source.dtype, dtype)) {
    return InvalidArgument(
        fmt::format("no conversion from {} to {}", DtypeName(source.dtype), DtypeName(dtype)));
  }
  RETURN_IF_ERROR(NeedUpload());
  ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype, source.rows, source.cols));
  RETURN_IF_ERROR(upload_->Copy(source, copy.view().data, dtype, source.cols));
  return copy;
}

Result<std::unique_ptr<PackedWeight>> CudaBackend::Pack(const LinearDesc& desc) {
  RETURN_IF_ERROR(NeedUpload());
  return PackedMatrix::Make(desc, Dtype::kBfloat16, allocator_, *upload_);
}

Result<std::unique_ptr<PackedWeight>> CudaBackend::PackRows(const LinearDesc& desc) {
  RETURN_IF_ERROR(NeedUpload());
  return PackedMatrix::Make(desc, Dtype::kFloat32, allocator_, *upload_);
}

Status CudaBackend::FinishLoading(int32_t max_tokens, int32_t max_sequences) {
  if (max_tokens < 1 || max_sequences < 1) {
    return InvalidArgument(fmt::format(
        "a step must hold at least one token and one sequence: {}, {}", max_tokens, max_sequences));
  }
  RETURN_IF_ERROR(
      CudaStatus(cudaStreamSynchronize(stream_.get()), "the weights could not be loaded"));
  upload_.reset();
  largest_ = LargestStep(max_tokens, max_sequences);
  max_sequences_ = max_sequences;
  ASSIGN_OR_RETURN(attention_, RaggedAttention::Make(largest_.num_tokens, largest_.num_sequences,
                                                     options_.attention));
  const size_t input_bytes = InputLayout(largest_).bytes();
  ASSIGN_OR_RETURN(inputs_, allocator_.Allocate(input_bytes, "the inputs of a step"));
  for (std::unique_ptr<Ticket>& ticket : tickets_) {
    ASSIGN_OR_RETURN(ticket, Ticket::Make(input_bytes));
  }
  return {};
}

Status CudaBackend::FinishWarmUp() {
  CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
  const std::vector<int64_t> rows =
      PaddedTokenCounts(std::min(largest_.num_tokens, kMostMeasuredTokens));
  gemm_->Tune(rows, stream_.get());
  return {};
}

Status CudaBackend::CopyIn(const void* source, TensorView target) {
  CHECK_EQ(target.row_stride, target.cols);
  const size_t bytes = static_cast<size_t>(target.rows * target.cols) * DtypeBytes(target.dtype);
  return CudaStatus(cudaMemcpy(target.data, source, bytes, cudaMemcpyHostToDevice),
                    "a tensor could not be copied to the device");
}

Status CudaBackend::CopyOut(TensorView source, void* target) {
  CHECK_EQ(source.row_stride, source.cols);
  const size_t bytes = static_cast<size_t>(source.rows * source.cols) * DtypeBytes(source.dtype);
  return CudaStatus(cudaMemcpy(target, source.data, bytes, cudaMemcpyDeviceToHost),
                    "a tensor could not be copied from the device");
}

// --- a step ---

StepTicket* CudaBackend::RunStep(const StepSlotMemory& slot, const Forward& forward) {
  CHECK(inputs_ != nullptr);  // FinishLoading comes first
  CUDA_CHECK(cudaSetDevice(device_.index));
  Ticket& ticket = *tickets_[static_cast<size_t>(slot.index)];
  const StepInputs& host = slot.host;
  StepSizes sizes{.num_tokens = host.num_tokens,
                  .num_sequences = host.num_sequences,
                  .longest_sequence = host.longest_sequence,
                  .has_token_types = host.token_type_ids != nullptr};
  if (options_.pad_steps) {
    sizes = PadStep(sizes);
  }
  CHECK_LE(sizes.num_tokens, largest_.num_tokens);
  CHECK_LE(sizes.num_sequences, largest_.num_sequences);
  const InputLayout layout(sizes);
  if (host.num_tokens > 0) {
    layout.Pack(host, ticket.inputs.get());
    CUDA_CHECK(cudaMemcpyAsync(inputs_.get(), ticket.inputs.get(), layout.bytes(),
                               cudaMemcpyHostToDevice, stream_.get()));
  }
  step_status_ = {};
  Launch(sizes, layout.At(inputs_.get()), forward);
  CopyResults(slot);
  ticket.status = std::move(step_status_);
  ticket.done.Record(stream_.get());
  return &ticket;
}

void CudaBackend::Launch(const StepSizes& padded, const StepInputs& inputs,
                         const Forward& forward) {
  using Action = GraphCache<Graph>::Action;
  Action action = Action::kRunEagerly;
  const bool may_capture =
      options_.graphs != GraphMode::kOff && padded.num_tokens <= kMostGraphTokens;
  if (may_capture) {
    action = graphs_.Next(padded);
  }
  if (action == Action::kCapture) {
    Result<Graph> graph = Capture(inputs, forward);
    if (graph.ok()) {
      graphs_.Insert(padded, std::move(graph).value());
      action = Action::kReplay;
    } else {
      LogWarning("steps of {} tokens and {} sequences run without a graph: {}", padded.num_tokens,
                 padded.num_sequences, graph.status().message());
      graphs_.SetUncapturable(padded);
    }
  }
  if (action == Action::kReplay) {
    graphs_.Find(padded).Launch(stream_.get());
  } else {
    current_ = stream_.get();
    RunForward(inputs, forward);
  }
}

void CudaBackend::RunForward(const StepInputs& inputs, const Forward& forward) {
  has_plan_ = false;
  forward(inputs);
  current_ = nullptr;
}

Result<Graph> CudaBackend::Capture(const StepInputs& inputs, const Forward& forward) {
  return Graph::Capture(capture_stream_.get(), [&] {
    current_ = capture_stream_.get();
    RunForward(inputs, forward);
  });
}

void CudaBackend::CopyResults(const StepSlotMemory& slot) {
  if (slot.rows == nullptr || result_width_ == 0) {
    return;
  }
  const auto sequences = static_cast<size_t>(slot.host.num_sequences);
  const size_t row_bytes = sequences * static_cast<size_t>(result_width_) * sizeof(float);
  const size_t offset = RowsOffset(max_sequences_);
  auto* statuses = reinterpret_cast<std::byte*>(slot.statuses);
  if (reinterpret_cast<std::byte*>(slot.rows) == statuses + offset) {
    CUDA_CHECK(cudaMemcpyAsync(statuses, results_.get(), offset + row_bytes, cudaMemcpyDeviceToHost,
                               stream_.get()));
    return;
  }
  CUDA_CHECK(
      cudaMemcpyAsync(statuses, results_.get(), sequences, cudaMemcpyDeviceToHost, stream_.get()));
  CUDA_CHECK(cudaMemcpyAsync(slot.rows, results_.get() + offset, row_bytes, cudaMemcpyDeviceToHost,
                             stream_.get()));
}

void CudaBackend::CheckInStep() const { CHECK(current_ != nullptr); }

TensorView CudaBackend::Scratch(Tensor* scratch, int64_t rows, int64_t cols) {
  const int64_t most = largest_.num_tokens;
  CHECK_LE(rows, most);
  if (scratch->empty() || scratch->view().cols < cols) {
    Result<Tensor> memory = Allocate(Dtype::kBfloat16, most, cols);
    if (!memory.ok()) {
      step_status_ = memory.status();
      return {};
    }
    *scratch = std::move(memory).value();
  }
  return {scratch->view().data, Dtype::kBfloat16, rows, cols, cols};
}

// --- ops ---

void CudaBackend::Embed(const EmbeddingDesc& desc, const StepInputs& inputs, TensorView out) {
  CheckInStep();
  CHECK_EQ(out.rows, inputs.num_tokens);
  CHECK_EQ(out.cols, desc.word.cols);
  CHECK(desc.position.empty() || desc.position.cols == out.cols);
  CHECK(desc.token_type.empty() || desc.token_type.cols == out.cols);
  CHECK(desc.norm_kind == NormKind::kNone || desc.norm.gain.cols == out.cols);
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

void CudaBackend::RotateHeads(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv) {
  RotaryArgs args;
  args.qkv = qkv.as<__nv_bfloat16>();
  args.row_stride = qkv.row_stride;
  args.tokens = qkv.rows;
  args.positions = inputs.positions;
  args.num_heads = desc.num_heads;
  args.num_kv_heads = desc.num_kv_heads;
  args.head_dim = desc.head_dim;
  args.query_gain = desc.query_norm.gain.as<const float>();
  args.key_gain = desc.key_norm.gain.as<const float>();
  args.query_epsilon = desc.query_norm.epsilon;
  args.key_epsilon = desc.key_norm.epsilon;
  args.rotates = desc.rope.enabled;
  for (int32_t i = 0; desc.rope.enabled && i < desc.head_dim / 2; ++i) {
    const double exponent = 2.0 * i / desc.head_dim;
    args.frequencies[i] =
        static_cast<float>(1.0 / std::pow(static_cast<double>(desc.rope.theta), exponent));
  }
  LaunchRotary(args, current_);
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
  if (desc.rope.enabled || !desc.query_norm.empty() || !desc.key_norm.empty()) {
    RotateHeads(desc, inputs, qkv);
  }
  const AttentionShape shape{.num_heads = desc.num_heads,
                             .num_kv_heads = desc.num_kv_heads,
                             .head_dim = desc.head_dim,
                             .mask = desc.mask,
                             .window = desc.window};
  const AttentionSizes sizes{.num_sequences = inputs.num_sequences,
                             .num_tokens = inputs.num_tokens,
                             .longest_sequence = inputs.longest_sequence};
  if (!has_plan_) {
    if (Status served = attention_->CheckServed(shape); !served.ok()) {
      step_status_ = std::move(served);
      return;
    }
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
                   .scale = desc.scale},
                  current_);
}

void CudaBackend::Pool(const PoolingDesc& desc, const StepInputs& inputs, TensorView hidden,
                       TensorView out) {
  CheckInStep();
  const auto modes = static_cast<int64_t>(desc.modes.size());
  CHECK_EQ(hidden.rows, inputs.num_tokens);
  CHECK(out.dtype == Dtype::kFloat32);
  CHECK_EQ(out.rows, inputs.num_sequences);
  CHECK_EQ(out.cols, modes * hidden.cols);
  PoolingArgs args;
  args.hidden = Data(hidden);
  args.hidden_stride = hidden.row_stride;
  args.sequence_offsets = inputs.sequence_offsets;
  args.pooling_starts = inputs.pooling_starts;
  args.out = out.as<float>();
  args.out_stride = out.row_stride;
  args.sequences = out.rows;
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
  CHECK_EQ(x.rows, inputs.num_sequences);
  const size_t offset = RowsOffset(max_sequences_);
  if (x.cols > result_width_) {
    const auto rows = static_cast<size_t>(largest_.num_sequences);
    Result<DeviceMemory> memory = allocator_.Allocate(
        offset + rows * static_cast<size_t>(x.cols) * sizeof(float), "the rows of a step");
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
                    .normalize = inputs.normalize,
                    .out = reinterpret_cast<float*>(results_.get() + offset),
                    .statuses = reinterpret_cast<RowStatus*>(results_.get()),
                    .rows = x.rows,
                    .width = x.cols},
                   current_);
}

}  // namespace bouquet::rose::cuda
