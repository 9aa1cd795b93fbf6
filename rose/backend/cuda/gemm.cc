#include "rose/backend/cuda/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "rose/backend/cuda/cuda_check.h"
#include "rose/backend/cuda/event.h"
#include "rose/backend/cuda/gemm_table_h200.h"

namespace bouquet::rose::cuda {
namespace {

// What cuBLASLt's own documentation advises for Hopper. Fixed: captured launches hold its address.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
// Sums that are split over K are added up in f32 and in a fixed order, so that the same launch
// always gives the same bits.
constexpr uint32_t kReductionSchemes =
    CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
constexpr uint32_t kBestAlignment = 16;
// Suggestions of the library that are measured per shape, runs of each, and weights it is run over.
constexpr int kCandidates = 16;
constexpr int kMeasuredRuns = 4;
constexpr int64_t kMostWeights = 32;
static_assert(sizeof(cublasLtMatmulAlgo_t) == GemmTable::kAlgorithmBytes);

/// The largest power of two that divides a row's length in bytes: what the library may assume of
/// every row's address.
uint32_t AlignmentOf(int64_t stride) {
  const auto bytes = static_cast<uint64_t>(stride) * sizeof(__nv_bfloat16);
  const uint32_t power = 1U << std::min(std::countr_zero(bytes), 4);
  return std::min(power, kBestAlignment);
}

void CheckCublas(cublasStatus_t status) {
  CHECK_EQ(static_cast<int>(status), CUBLAS_STATUS_SUCCESS);
}

}  // namespace

// In the library's words, whose matrices are column-major: outᵀ = weight · xᵀ with weight
// transposed.
struct Gemm::Plan {
  explicit Plan(const CublasLt& library) : lt(library) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {weight, x, out}) {
      if (layout != nullptr) {
        lt.MatrixLayoutDestroy(layout);
      }
    }
    if (product != nullptr) {
      lt.MatmulDescDestroy(product);
    }
  }

  template <class Value>
  void Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) const {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): a pointer is a value here
    CheckCublas(lt.MatmulDescSetAttribute(product, attribute, &value, sizeof(value)));
  }

  const CublasLt& lt;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t weight = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms;  // the one to use first
  size_t workspace_bytes = 0;                    // of the first
};

Result<std::unique_ptr<Gemm>> Gemm::Make(std::string device, DeviceAllocator& allocator) {
  std::unique_ptr<Gemm> gemm(new Gemm());
  gemm->device_ = std::move(device);
  ASSIGN_OR_RETURN(gemm->lt_, CublasLt::Open());
  ASSIGN_OR_RETURN(gemm->workspace_,
                   allocator.Allocate(kWorkspaceBytes, "the workspace of matrix products"));
  ASSIGN_OR_RETURN(gemm->small_workspaces_,
                   allocator.Allocate(kSmallWorkspacesBytes, "the counters of matrix products"));
  return gemm;
}

Gemm::~Gemm() = default;

std::string Gemm::version() const {
  const size_t version = lt_->version();
  return fmt::format("cublasLt {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Result<std::unique_ptr<Gemm::Plan>> Gemm::MakePlan(const GemmShape& shape, int wanted) const {
  auto plan = std::make_unique<Plan>(*lt_);
  RETURN_IF_ERROR(CublasStatus(
      lt_->MatmulDescCreate(&plan->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a matrix product"));
  plan->Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  plan->Set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (shape.has_bias) {
    plan->Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    plan->Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
  }
  const auto layout = [&](cublasLtMatrixLayout_t* out, int64_t rows, int64_t cols, int64_t stride) {
    return CublasStatus(lt_->MatrixLayoutCreate(out, CUDA_R_16BF, static_cast<uint64_t>(rows),
                                                static_cast<uint64_t>(cols), stride),
                        "a matrix");
  };
  RETURN_IF_ERROR(
      layout(&plan->weight, shape.in_features, shape.out_features, shape.weight_stride));
  RETURN_IF_ERROR(layout(&plan->x, shape.in_features, shape.rows, shape.x_stride));
  RETURN_IF_ERROR(layout(&plan->out, shape.out_features, shape.rows, shape.out_stride));

  cublasLtMatmulPreference_t preference = nullptr;
  RETURN_IF_ERROR(CublasStatus(lt_->MatmulPreferenceCreate(&preference), "a preference"));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    CheckCublas(lt_->MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductionSchemes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(shape.weight_stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(shape.x_stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, AlignmentOf(shape.out_stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, AlignmentOf(shape.out_stride));
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(wanted));
  int count = 0;
  const cublasStatus_t status =
      lt_->MatmulAlgoGetHeuristic(lt_->handle(), plan->product, plan->weight, plan->x, plan->out,
                                  plan->out, preference, wanted, found.data(), &count);
  lt_->MatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    return Unimplemented(fmt::format(
        "{} has no algorithm for a product [{}, {}] x [{}, {}]: status {}", version(), shape.rows,
        shape.in_features, shape.in_features, shape.out_features, static_cast<int>(status)));
  }
  for (int i = 0; i < count; ++i) {
    plan->algorithms.push_back(found[static_cast<size_t>(i)].algo);
  }
  return plan;
}

std::optional<size_t> Gemm::WorkspaceOf(const Plan& plan,
                                        const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  if (lt_->MatmulAlgoCheck(lt_->handle(), plan.product, plan.weight, plan.x, plan.out, plan.out,
                           &algorithm, &result) != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > kWorkspaceBytes) {
    return std::nullopt;
  }
  return result.workspaceSize;
}

Gemm::Plan& Gemm::Find(const GemmShape& shape) {
  const auto found = plans_.find(shape);
  if (found != plans_.end()) {
    return *found->second;
  }
  Result<std::unique_ptr<Plan>> made = MakePlan(shape, 1);
  CHECK(made.ok());
  std::unique_ptr<Plan> plan = std::move(made).value();
  if (table_ != nullptr) {
    for (const GemmTable::Entry* entry : {table_->Find(shape), table_->FindSmaller(shape)}) {
      if (entry == nullptr) {
        continue;
      }
      const auto algorithm = std::bit_cast<cublasLtMatmulAlgo_t>(entry->algorithm);
      if (WorkspaceOf(*plan, algorithm).has_value()) {
        plan->algorithms.front() = algorithm;
        break;
      }
    }
  }
  plan->workspace_bytes = WorkspaceOf(*plan, plan->algorithms.front()).value_or(kWorkspaceBytes);
  return *plans_.emplace(shape, std::move(plan)).first->second;
}

void Gemm::Launch(const Plan& plan, const GemmShape& shape, const GemmOperands& operands,
                  const cublasLtMatmulAlgo_t& algorithm, std::byte* workspace,
                  size_t workspace_bytes, cudaStream_t stream) const {
  if (shape.has_bias) {
    plan.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  const float one = 1.0F;
  const float beta = shape.adds_residual ? 1.0F : 0.0F;
  const __nv_bfloat16* addend = shape.adds_residual ? operands.residual : operands.out;
  CheckCublas(lt_->Matmul(lt_->handle(), plan.product, &one, operands.weight, plan.weight,
                          operands.x, plan.x, &beta, addend, plan.out, operands.out, plan.out,
                          &algorithm, workspace, workspace_bytes, stream));
}

void Gemm::Run(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream) {
  if (table_ == nullptr) {  // before Tune
    std::vector<const __nv_bfloat16*>& weights = layers_[shape.WithRows(0)];
    if (weights.size() < kMostWeights) {
      weights.push_back(operands.weight);
    }
  }
  const Plan& plan = Find(shape);
  std::byte* workspace = workspace_.get();
  size_t workspace_bytes = kWorkspaceBytes;
  const size_t at = num_small_workspaces_ * kSmallWorkspaceBytes;
  if (plan.workspace_bytes > 0 && plan.workspace_bytes <= kSmallWorkspaceBytes &&
      at < kSmallWorkspacesBytes) {
    workspace = small_workspaces_.get() + at;
    workspace_bytes = kSmallWorkspaceBytes;
    ++num_small_workspaces_;
  }
  Launch(plan, shape, operands, plan.algorithms.front(), workspace, workspace_bytes, stream);
}

// --- measuring ---

void Gemm::ReadTables() {
  table_ = std::make_unique<GemmTable>(device_, lt_->version());
  if (const std::optional<std::filesystem::path> path = GemmTablePath(device_, lt_->version())) {
    const Status read = table_->ReadFile(*path);
    if (!read.ok() && read.code() != StatusCode::kNotFound) {
      LogWarning("algorithms are measured again: {}", read.message());
    }
  }
  // The one built in is for one device and one library version, and stays unused elsewhere.
  const Status built_in = table_->Add(kH200GemmTable, "the table built in");
  if (!built_in.ok()) {
    LogDebug("{}", built_in.message());
  }
}

void Gemm::Tune(std::span<const int64_t> rows, cudaStream_t stream) {
  ReadTables();
  plans_.clear();
  std::vector<std::pair<GemmShape, const std::vector<const __nv_bfloat16*>*>> missing;
  size_t x_bytes = 0;
  size_t out_bytes = 0;
  for (const auto& [layer, weights] : layers_) {
    for (const int64_t count : rows) {
      const GemmShape shape = layer.WithRows(count);
      if (table_->Find(shape) == nullptr) {
        missing.emplace_back(shape, &weights);
        const auto bytes = [&](int64_t stride) {
          return static_cast<size_t>(count * stride) * sizeof(__nv_bfloat16);
        };
        x_bytes = std::max(x_bytes, bytes(shape.x_stride));
        out_bytes = std::max(out_bytes, bytes(shape.out_stride));
      }
    }
  }
  if (missing.empty()) {
    return;
  }
  const auto allocate = [](size_t bytes) {
    void* data = nullptr;
    if (cudaMalloc(&data, bytes) != cudaSuccess) {
      cudaGetLastError();
    }
    return DeviceMemory(static_cast<std::byte*>(data));
  };
  const DeviceMemory x = allocate(x_bytes);
  const DeviceMemory residual = allocate(out_bytes);
  const DeviceMemory out = allocate(out_bytes);
  if (x == nullptr || residual == nullptr || out == nullptr) {
    LogWarning("no device memory to measure matrix products: the library's suggestions are used");
    return;
  }
  LogInfo("measuring {} matrix products, once for this device and model", missing.size());
  for (const auto& [shape, weights] : missing) {
    const auto* bias = (*weights)[0];  // any numbers will do, but not zeros, which compute faster
    const auto bytes = static_cast<size_t>(shape.out_features * shape.weight_stride) * 2;
    for (size_t at = 0; at < x_bytes; at += bytes) {
      CUDA_CHECK(cudaMemcpyAsync(x.get() + at, bias, std::min(bytes, x_bytes - at),
                                 cudaMemcpyDeviceToDevice, stream));
    }
    Measure(shape, *weights,
            {.x = reinterpret_cast<const __nv_bfloat16*>(x.get()),
             .weight = nullptr,
             .bias = bias,
             .residual = reinterpret_cast<const __nv_bfloat16*>(residual.get()),
             .out = reinterpret_cast<__nv_bfloat16*>(out.get())},
            stream);
  }
  if (const std::optional<std::filesystem::path> path = GemmTablePath(device_, lt_->version())) {
    const Status written = table_->WriteFile(*path);
    if (written.ok()) {
      LogInfo("kept for later starts in {}", path->string());
    } else {
      LogWarning("measured algorithms are not kept: {}", written.message());
    }
  }
}

void Gemm::Measure(const GemmShape& shape, const std::vector<const __nv_bfloat16*>& weights,
                   const GemmOperands& operands, cudaStream_t stream) {
  Result<std::unique_ptr<Plan>> made = MakePlan(shape, kCandidates);
  Result<Event> begin = Event::CreateWithTime();
  Result<Event> end = Event::CreateWithTime();
  CHECK(made.ok() && begin.ok() && end.ok());
  const Plan& plan = *made.value();
  // As many products as take a fraction of a millisecond.
  const int64_t products = std::clamp<int64_t>(16'384 / shape.rows, 4, kMostWeights);
  GemmTable::Entry best;
  for (const cublasLtMatmulAlgo_t& algorithm : plan.algorithms) {
    // One graph, so that the host's launches do not count.
    Result<Graph> graph = Graph::Capture(stream, [&] {
      GemmOperands product = operands;
      for (int64_t i = 0; i < products; ++i) {
        product.weight = weights[static_cast<size_t>(i) % weights.size()];
        Launch(plan, shape, product, algorithm, workspace_.get(), kWorkspaceBytes, stream);
      }
    });
    if (!graph.ok()) {
      continue;
    }
    float shortest = 0;
    for (int run = 0; run < kMeasuredRuns; ++run) {  // the first warms up
      begin->Record(stream);
      graph->Launch(stream);
      end->Record(stream);
      end->Wait();
      float milliseconds = 0;
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin->get(), end->get()));
      if (run == 1 || (run > 1 && milliseconds < shortest)) {
        shortest = milliseconds;
      }
    }
    const double microseconds = 1000.0 * shortest / static_cast<double>(products);
    if (best.microseconds == 0 || microseconds < best.microseconds) {
      best.microseconds = microseconds;
      best.algorithm = std::bit_cast<GemmTable::Algorithm>(algorithm);
    }
  }
  if (best.microseconds > 0) {
    table_->Set(shape, best);
  }
}

}  // namespace bouquet::rose::cuda
