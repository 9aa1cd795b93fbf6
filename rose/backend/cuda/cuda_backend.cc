#include "rose/backend/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/step_memory.h"
#include "rose/tensor/convert.h"

namespace bouquet::rose::cuda {
namespace {

// Raise when a kernel changes the last bits of a result.
constexpr int kKernelVersion = 2;
// Padded sizes of steps remembered at once, and the memory of those that are captured: a step of a
// 28-layer network has some 300 nodes, about a MiB.
constexpr size_t kMaxStepSizes = 1024;
constexpr int64_t kMaxGraphBytes = int64_t{256} << 20;
// Products are measured up to as many rows; beyond, the algorithm of the largest is taken.
constexpr int32_t kMostMeasuredTokens = 8192;
constexpr int64_t kMaxElements = int64_t{1} << 40;
// A step that ends soon is waited for without giving up the core, since waking up takes as long: so
// many looks of about a microsecond each.
constexpr int kLooks = 50;

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
      graphs_(kMaxStepSizes, kMaxGraphBytes, options.graphs == GraphMode::kStartup) {}

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

StepSizes CudaBackend::LargestStep(int32_t max_tokens, int32_t max_sequences,
                                   int32_t max_rows) const {
  const StepSizes sizes{.num_tokens = max_tokens,
                        .num_sequences = max_sequences,
                        .num_rows = max_rows,
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

Status CudaBackend::FinishLoading(int32_t max_tokens, int32_t max_sequences, int32_t max_rows) {
  if (max_tokens < 1 || max_sequences < 1 || max_rows < max_sequences) {
    return InvalidArgument(fmt::format(
        "a step must hold at least one token, one sequence and a row for each: {}, {}, {}",
        max_tokens, max_sequences, max_rows));
  }
  RETURN_IF_ERROR(
      CudaStatus(cudaStreamSynchronize(stream_.get()), "the weights could not be loaded"));
  upload_.reset();
  largest_ = LargestStep(max_tokens, max_sequences, max_rows);
  max_rows_ = max_rows;
  ASSIGN_OR_RETURN(attention_, RaggedAttention::Make(largest_.num_tokens, largest_.num_sequences,
                                                     options_.attention, allocator_));
  const size_t input_bytes = InputLayout(largest_).bytes();
  ASSIGN_OR_RETURN(inputs_, allocator_.Allocate(input_bytes, "the inputs of a step"));
  for (std::unique_ptr<Ticket>& ticket : tickets_) {
    ASSIGN_OR_RETURN(ticket, Ticket::Make(input_bytes));
  }
  return {};
}

Status CudaBackend::FinishWarmUp() {
  CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
  is_warm_ = true;
  const std::vector<int64_t> rows =
      PaddedTokenCounts(std::min(largest_.num_tokens, kMostMeasuredTokens));
  gemm_->Tune(rows, stream_.get());
  graphs_.set_max_bytes(std::min(kMaxGraphBytes, allocator_.Available()));
  return {};
}

Status CudaBackend::CopyIn(const void* source, TensorView target) {
  CHECK_EQ(target.row_stride, target.cols);
  const size_t bytes = static_cast<size_t>(target.rows * target.cols) * DtypeBytes(target.dtype);
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(target.data, source, bytes, cudaMemcpyHostToDevice, stream_.get()),
                 "a tensor could not be copied to the device"));
  return CudaStatus(cudaStreamSynchronize(stream_.get()),
                    "a tensor could not be copied to the device");
}

Status CudaBackend::CopyOut(TensorView source, void* target) {
  CHECK_EQ(source.row_stride, source.cols);
  const size_t bytes = static_cast<size_t>(source.rows * source.cols) * DtypeBytes(source.dtype);
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(target, source.data, bytes, cudaMemcpyDeviceToHost, stream_.get()),
                 "a tensor could not be copied from the device"));
  return CudaStatus(cudaStreamSynchronize(stream_.get()),
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
                  .num_rows = host.num_rows,
                  .longest_sequence = host.longest_sequence,
                  .has_token_types = host.token_type_ids != nullptr};
  if (options_.pad_steps) {
    sizes = PadStep(sizes);
  }
  CHECK_LE(sizes.num_tokens, largest_.num_tokens);
  CHECK_LE(sizes.num_sequences, largest_.num_sequences);
  CHECK_LE(sizes.num_rows, largest_.num_rows);
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
  const bool may_capture = is_warm_ && captures_steps() && padded.num_tokens <= kMostGraphTokens;
  if (may_capture) {
    action = graphs_.Next(padded);
  }
  if (action == Action::kCapture) {
    Result<Graph> graph = Capture(inputs, forward);
    if (graph.ok()) {
      const int64_t bytes = graph->bytes();
      if (graphs_.Insert(padded, std::move(graph).value(), bytes)) {
        action = Action::kReplay;
      } else {
        LogWarning(
            "steps of {} tokens and {} sequences run without a graph: --memory-fraction {} leaves "
            "no memory for one",
            padded.num_tokens, padded.num_sequences, options_.memory_fraction);
      }
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
  ++step_;
  gemm_->BeginStep();
  forward(inputs);
  current_ = nullptr;
}

Result<Graph> CudaBackend::Capture(const StepInputs& inputs, const Forward& forward) {
  return Graph::Capture(
      capture_stream_.get(),
      [&] {
        current_ = capture_stream_.get();
        RunForward(inputs, forward);
      },
      gemm_->small_workspaces());
}

void CudaBackend::CopyResults(const StepSlotMemory& slot) {
  if (slot.rows == nullptr || result_width_ == 0) {
    return;
  }
  const auto rows = static_cast<size_t>(slot.host.num_rows);
  const size_t bytes =
      rows * RowBytes(model::RowDtype::kFloat32, static_cast<size_t>(result_width_));
  const size_t offset = RowsOffset(max_rows_);
  auto* statuses = reinterpret_cast<std::byte*>(slot.statuses);
  if (slot.rows == statuses + offset) {
    CUDA_CHECK(cudaMemcpyAsync(statuses, results_.get(), offset + bytes, cudaMemcpyDeviceToHost,
                               stream_.get()));
    return;
  }
  CUDA_CHECK(
      cudaMemcpyAsync(statuses, results_.get(), rows, cudaMemcpyDeviceToHost, stream_.get()));
  CUDA_CHECK(cudaMemcpyAsync(slot.rows, results_.get() + offset, bytes, cudaMemcpyDeviceToHost,
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

}  // namespace bouquet::rose::cuda
