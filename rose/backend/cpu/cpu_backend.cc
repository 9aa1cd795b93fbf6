#include "rose/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "rose/backend/cpu/finish_rows.h"
#include "rose/backend/cpu/gemm.h"
#include "rose/backend/cpu/packed_linear.h"
#include "rose/tensor/convert.h"

namespace bouquet::rose::cpu {
namespace {

// Raise when a kernel changes the last bits of a result.
constexpr int kKernelVersion = 1;
// Row-wise ops are shared out in runs of this many rows.
constexpr int64_t kRowsPerChunk = 16;
constexpr int64_t kMaxRowsOfTensor = int64_t{1} << 40;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

void CheckSameShape(TensorView a, TensorView b) {
  CHECK_EQ(a.rows, b.rows);
  CHECK_EQ(a.cols, b.cols);
}

void FreeAligned(void* data, size_t /*bytes*/) { AlignedFree()(data); }
void KeepBorrowed(void* /*data*/, size_t /*bytes*/) {}

}  // namespace

class CpuBackend::Ticket final : public StepTicket {
 public:
  explicit Ticket(const WorkerPool& pool) : pool_(pool) {}
  bool IsReady() const override { return pool_.IsIdle(); }
  Status Wait() override {
    pool_.WaitUntilIdle();
    return {};
  }

 private:
  const WorkerPool& pool_;
};

CpuBackend::CpuBackend(Dtype compute_dtype, int32_t threads, Isa isa)
    : dtype_(compute_dtype),
      isa_(isa),
      kernels_(KernelsFor(isa, compute_dtype)),
      row_kernels_(KernelsFor(isa, Dtype::kFloat32)),
      pool_(threads) {
  ticket_ = std::make_unique<Ticket>(pool_);
}

CpuBackend::~CpuBackend() = default;

Status CpuBackend::BindThreads(std::span<const int32_t> processors) {
  RETURN_IF_ERROR(pool_.BindTo(processors));
  threads_are_bound_ = true;
  return {};
}

std::string CpuBackend::description() const {
  return fmt::format("cpu, {}{} thread{}, {}", pool_.size(), threads_are_bound_ ? " pinned" : "",
                     pool_.size() == 1 ? "" : "s", IsaName(isa_));
}

std::string CpuBackend::numerics() const {
  return fmt::format("cpu kernels {}, {}, {}", kKernelVersion, IsaName(isa_), DtypeName(dtype_));
}

// --- loading ---

Result<Tensor> CpuBackend::Allocate(Dtype dtype, int64_t rows, int64_t cols) {
  if (rows < 0 || cols < 0 || (cols > 0 && rows > kMaxRowsOfTensor / cols)) {
    return InvalidArgument(fmt::format("a tensor's shape is out of range: [{}, {}]", rows, cols));
  }
  const size_t bytes = static_cast<size_t>(rows * cols) * DtypeBytes(dtype);
  void* data = AlignedAllocate(bytes);
  if (data == nullptr) {
    return ResourceExhausted(
        fmt::format("no memory for a tensor: [{}, {}] {}", rows, cols, DtypeName(dtype)));
  }
  return Tensor({data, dtype, rows, cols, cols}, bytes, FreeAligned);
}

Result<HostMemory> CpuBackend::AllocateHost(size_t bytes) {
  auto* data = static_cast<std::byte*>(AlignedAllocate(bytes));
  if (data == nullptr) {
    return ResourceExhausted(fmt::format("no memory for the results of a step: {} bytes", bytes));
  }
  return HostMemory(data, [](std::byte* memory) { AlignedFree()(memory); });
}

Status CpuBackend::CopyIn(const void* source, TensorView target) {
  CHECK_EQ(target.row_stride, target.cols);
  std::memcpy(target.data, source,
              static_cast<size_t>(target.rows * target.cols) * DtypeBytes(target.dtype));
  return {};
}

Status CpuBackend::CopyOut(TensorView source, void* target) {
  CHECK_EQ(source.row_stride, source.cols);
  std::memcpy(target, source.data,
              static_cast<size_t>(source.rows * source.cols) * DtypeBytes(source.dtype));
  return {};
}

Result<Tensor> CpuBackend::Upload(const HostTensor& source, Dtype dtype) {
  if (!CanConvert(source.dtype, dtype)) {
    return InvalidArgument(
        fmt::format("no conversion from {} to {}", DtypeName(source.dtype), DtypeName(dtype)));
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(source.data) % DtypeBytes(source.dtype) == 0;
  if (source.dtype == dtype && is_aligned) {
    // Views are not const, but nothing writes to weights.
    return Tensor({const_cast<void*>(source.data), dtype, source.rows, source.cols, source.cols}, 0,
                  KeepBorrowed);
  }
  ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype, source.rows, source.cols));
  ConvertElements(source.data, source.dtype, copy.view().data, dtype, source.rows * source.cols);
  return copy;
}

Result<std::unique_ptr<PackedWeight>> CpuBackend::Pack(const LinearDesc& desc) {
  ASSIGN_OR_RETURN(std::unique_ptr<PackedWeight> packed,
                   PackedLinear::Make(desc, dtype_, kernels_.panel_columns));
  widest_input_ = std::max(widest_input_, packed->in_features);
  return packed;
}

Result<std::unique_ptr<PackedWeight>> CpuBackend::PackRows(const LinearDesc& desc) {
  return PackedLinear::Make(desc, Dtype::kFloat32, row_kernels_.panel_columns);
}

Status CpuBackend::FinishLoading(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) {
  if (max_tokens < 1 || max_sequences < 1 || max_rows < max_sequences) {
    return InvalidArgument(fmt::format(
        "a step must hold at least one token, one sequence and a row for each: {}, {}, {}",
        max_tokens, max_sequences, max_rows));
  }
  max_rows_ = std::max(max_tokens, max_rows);
  NeedRowScratch(widest_input_);
  attention_.Prepare(pool_.size(), max_tokens, max_sequences);
  return {};
}

void CpuBackend::NeedRowScratch(int64_t width) {
  if (width > row_scratch_width_ || row_scratch_ == nullptr) {
    row_scratch_width_ = (width + 15) / 16 * 16;
    row_scratch_ = MakeAlignedArray<float>(static_cast<size_t>(row_scratch_width_ * pool_.size()));
    CHECK(row_scratch_ != nullptr);
  }
}

// --- a step ---

StepTicket* CpuBackend::RunStep(const StepSlotMemory& slot,
                                const std::function<void(const StepInputs& inputs)>& forward) {
  CHECK_GT(max_rows_, 0);  // FinishLoading comes first
  CHECK(pool_.IsIdle());
  slot_ = slot;
  forward_ = forward;
  pool_.PostStep([this] { forward_(slot_.host); });
  return ticket_.get();
}

void CpuBackend::CheckInStep() const { CHECK(pool_.IsInStep()); }

// --- ops ---

void CpuBackend::Embed(const EmbeddingDesc& desc, const StepInputs& inputs, TensorView out) {
  CheckInStep();
  CHECK_EQ(out.rows, inputs.num_tokens);
  CHECK_EQ(out.cols, desc.word.cols);
  CHECK(out.dtype == dtype_ && desc.word.dtype == dtype_);
  CHECK(desc.position.empty() || (desc.position.cols == out.cols && desc.position.dtype == dtype_));
  CHECK(desc.token_type.empty() ||
        (desc.token_type.cols == out.cols && desc.token_type.dtype == dtype_));
  CHECK(desc.norm_kind == NormKind::kNone || desc.norm.gain.cols == out.cols);
  NeedRowScratch(out.cols);
  const EmbedArgs args{.token_ids = inputs.token_ids,
                       .positions = inputs.positions,
                       .token_type_ids = inputs.token_type_ids,
                       .word = desc.word.data,
                       .position = desc.position.data,
                       .token_type = desc.token_type.data,
                       .word_stride = desc.word.row_stride,
                       .position_stride = desc.position.row_stride,
                       .token_type_stride = desc.token_type.row_stride,
                       .position_offset = desc.position_offset,
                       .norm = {.out = out.data,
                                .out_stride = out.row_stride,
                                .width = out.cols,
                                .kind = desc.norm_kind,
                                .gain = desc.norm.gain.as<const float>(),
                                .bias = desc.norm.bias.as<const float>(),
                                .epsilon = desc.norm.epsilon}};
  pool_.ForEachChunk(DivideUp(out.rows, kRowsPerChunk), [&](int64_t chunk, int32_t worker) {
    const int64_t begin = chunk * kRowsPerChunk;
    kernels_.embed(args, begin, std::min(begin + kRowsPerChunk, out.rows), RowScratch(worker));
  });
}

void CpuBackend::Norm(const NormDesc& desc, TensorView x, TensorView residual, TensorView sum,
                      TensorView out) {
  CheckInStep();
  CHECK(x.dtype == dtype_ && out.dtype == dtype_);
  Normalise(desc, x, residual, sum, out, kernels_);
}

void CpuBackend::Normalise(const NormDesc& desc, TensorView x, TensorView residual, TensorView sum,
                           TensorView out, const Kernels& kernels) {
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
  NeedRowScratch(x.cols);
  const NormArgs args{.x = x.data,
                      .x_stride = x.row_stride,
                      .residual = residual.data,
                      .residual_stride = residual.row_stride,
                      .sum = sum.data,
                      .sum_stride = sum.row_stride,
                      .out = out.data,
                      .out_stride = out.row_stride,
                      .width = x.cols,
                      .kind = desc.kind,
                      .gain = desc.weights.gain.as<const float>(),
                      .bias = desc.weights.bias.as<const float>(),
                      .epsilon = desc.weights.epsilon};
  pool_.ForEachChunk(DivideUp(x.rows, kRowsPerChunk), [&](int64_t chunk, int32_t worker) {
    const int64_t begin = chunk * kRowsPerChunk;
    kernels.norm(args, begin, std::min(begin + kRowsPerChunk, x.rows), RowScratch(worker));
  });
}

void CpuBackend::Gemm(const GemmDesc& desc, TensorView x, TensorView out) {
  CheckInStep();
  Multiply(desc, x, out, kernels_, dtype_);
}

void CpuBackend::GemmRows(const GemmDesc& desc, TensorView x, TensorView out) {
  CheckInStep();
  Multiply(desc, x, out, row_kernels_, Dtype::kFloat32);
}

void CpuBackend::Multiply(const GemmDesc& desc, TensorView x, TensorView out,
                          const Kernels& kernels, Dtype dtype) {
  const auto& weight = static_cast<const PackedLinear&>(*desc.weight);
  CHECK(weight.dtype() == dtype && x.dtype == dtype && out.dtype == dtype);
  CHECK_EQ(x.cols, weight.in_features);
  CHECK_EQ(out.cols, weight.out_features);
  CHECK_EQ(x.rows, out.rows);
  if (!desc.residual.empty()) {
    CheckSameShape(desc.residual, out);
  }
  if (desc.prologue.kind != NormKind::kNone) {
    if (prologue_.empty()) {
      Result<Tensor> memory = Allocate(Dtype::kFloat32, max_rows_, std::max(widest_input_, x.cols));
      CHECK(memory.ok());
      prologue_ = std::move(memory).value();
    }
    CHECK_LE(x.rows * x.cols, prologue_.view().rows * prologue_.view().cols);
    const TensorView normed{prologue_.view().data, dtype, x.rows, x.cols, x.cols};
    Normalise(desc.prologue, x, {}, {}, normed, kernels);
    x = normed;
  }
  const GemmArgs args{.x = x.data,
                      .x_stride = x.row_stride,
                      .panels = weight.panels(),
                      .bias = weight.bias(),
                      .residual = desc.residual.data,
                      .residual_stride = desc.residual.row_stride,
                      .out = out.data,
                      .out_stride = out.row_stride,
                      .in_features = weight.in_features,
                      .out_features = weight.out_features,
                      .activation = weight.activation(),
                      .gated = weight.gated()};
  RunGemm(args, x.rows, weight.num_panels(), kernels, pool_);
}

void CpuBackend::Attention(const AttentionDesc& desc, const StepInputs& inputs, TensorView qkv,
                           TensorView out) {
  CheckInStep();
  CHECK(qkv.dtype == dtype_ && out.dtype == dtype_);
  attention_.Run(desc, inputs, qkv, out, kernels_, pool_);
}

void CpuBackend::Pool(const PoolingDesc& desc, const StepInputs& inputs, TensorView hidden,
                      TensorView out) {
  CheckInStep();
  const int64_t width = hidden.cols;
  const auto modes = static_cast<int64_t>(desc.modes.size());
  CHECK_EQ(hidden.rows, inputs.num_tokens);
  CHECK(hidden.dtype == dtype_ && out.dtype == Dtype::kFloat32);
  CHECK_EQ(out.rows, inputs.num_rows);
  CHECK_EQ(out.cols, modes * width);
  pool_.ForEachChunk(inputs.num_rows, [&](int64_t row, int32_t) {
    const auto [first, begin, end] = inputs.pooling_ranges[row];
    CHECK(first >= 0 && first < end && begin >= first && begin <= end);
    for (int64_t mode = 0; mode < modes; ++mode) {
      kernels_.pool({.hidden = hidden.Rows(first, end - first).data,
                     .hidden_stride = hidden.row_stride,
                     .length = end - first,
                     .start = begin - first,
                     .width = width,
                     .mode = desc.modes[static_cast<size_t>(mode)],
                     .out = out.as<float>() + row * out.row_stride + mode * width});
    }
  });
}

void CpuBackend::NormalizeRows(TensorView x) {
  CheckInStep();
  CHECK(x.dtype == Dtype::kFloat32);
  pool_.ForEachChunk(DivideUp(x.rows, kRowsPerChunk), [&](int64_t chunk, int32_t) {
    const int64_t end = std::min((chunk + 1) * kRowsPerChunk, x.rows);
    for (int64_t row = chunk * kRowsPerChunk; row < end; ++row) {
      NormalizeRow(x.as<float>() + row * x.row_stride, x.cols);
    }
  });
}

void CpuBackend::FinishRows(const StepInputs& inputs, TensorView x) {
  CheckInStep();
  CHECK(x.dtype == Dtype::kFloat32);
  CHECK_EQ(x.rows, inputs.num_rows);
  const auto stride =
      static_cast<int64_t>(RowBytes(model::RowDtype::kFloat32, static_cast<size_t>(x.cols)));
  pool_.ForEachChunk(DivideUp(x.rows, kRowsPerChunk), [&](int64_t chunk, int32_t) {
    const int64_t end = std::min((chunk + 1) * kRowsPerChunk, x.rows);
    for (int64_t row = chunk * kRowsPerChunk; row < end; ++row) {
      const RowFormat format{.dimensions = inputs.dimensions[row],
                             .normalize = inputs.normalize[row] != 0,
                             .dtype = inputs.row_dtypes[row]};
      CHECK(format.dimensions >= 1 && format.dimensions <= x.cols);
      CHECK(!IsSignBits(format.dtype) || format.dimensions % 8 == 0);
      slot_.statuses[row] = FinishRow(x.as<const float>() + row * x.row_stride, x.cols, format,
                                      slot_.rows + row * stride);
    }
  });
}

}  // namespace bouquet::rose::cpu
