#include "rose/backend/cuda/gemm.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

#include "base/check.h"

namespace bouquet::rose::cuda {
namespace {

// What cuBLASLt's own documentation advises for Hopper. Fixed: captured launches hold its address.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
// Sums that are split over K are added up in f32 and in a fixed order, so that the same launch
// always gives the same bits.
constexpr uint32_t kReductionSchemes =
    CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
constexpr uint32_t kBestAlignment = 16;

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
  void Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    CheckCublas(lt.MatmulDescSetAttribute(product, attribute, &value, sizeof(value)));
  }

  const CublasLt& lt;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t weight = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

Result<std::unique_ptr<Gemm>> Gemm::Make(DeviceAllocator& allocator) {
  std::unique_ptr<Gemm> gemm(new Gemm());
  ASSIGN_OR_RETURN(gemm->lt_, CublasLt::Open());
  ASSIGN_OR_RETURN(gemm->workspace_,
                   allocator.Allocate(kWorkspaceBytes, "the workspace of matrix products"));
  return gemm;
}

Gemm::~Gemm() = default;

std::string Gemm::version() const {
  const size_t version = lt_->version();
  return fmt::format("cublasLt {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Result<std::unique_ptr<Gemm::Plan>> Gemm::MakePlan(const GemmShape& shape) const {
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
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      lt_->MatmulAlgoGetHeuristic(lt_->handle(), plan->product, plan->weight, plan->x, plan->out,
                                  plan->out, preference, 1, &found, &count);
  lt_->MatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    return Unimplemented(fmt::format(
        "{} has no algorithm for a product [{}, {}] x [{}, {}]: status {}", version(), shape.rows,
        shape.in_features, shape.in_features, shape.out_features, static_cast<int>(status)));
  }
  plan->algorithm = found.algo;
  return plan;
}

Result<Gemm::Plan*> Gemm::Find(const GemmShape& shape) {
  const auto found = plans_.find(shape);
  if (found != plans_.end()) {
    return found->second.get();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(shape));
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

Status Gemm::Prepare(const GemmShape& shape) { return Find(shape).status(); }

void Gemm::Run(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream) {
  Result<Plan*> found = Find(shape);
  CHECK(found.ok());
  Plan& plan = *found.value();
  if (shape.has_bias) {
    plan.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  const float one = 1.0F;
  const float beta = shape.adds_residual ? 1.0F : 0.0F;
  const __nv_bfloat16* addend = shape.adds_residual ? operands.residual : operands.out;
  CheckCublas(lt_->Matmul(lt_->handle(), plan.product, &one, operands.weight, plan.weight,
                          operands.x, plan.x, &beta, addend, plan.out, operands.out, plan.out,
                          &plan.algorithm, workspace_.get(), kWorkspaceBytes, stream));
}

}  // namespace bouquet::rose::cuda
