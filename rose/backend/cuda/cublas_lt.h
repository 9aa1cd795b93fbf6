#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace bouquet::rose::cuda {

/// cuBLASLt, opened at run time: the binary starts on machines without it, and takes it from where
/// it is: the loader's path, the folder that BOUQUET_CUDA_LIBRARIES names, the toolkit in CUDA_HOME
/// or /usr/local/cuda, or the NVIDIA wheels beside a PyTorch installation. Functions have the names
/// and the meaning of the library's own, without the prefix.
class CublasLt {
 public:
  /// Error: kNotFound that lists where it was looked for; kUnimplemented for a release that is not
  /// the one the headers were.
  static Result<std::unique_ptr<CublasLt>> Open();
  ~CublasLt();

  /// 130101 is 13.1.1. Algorithms may be kept from run to run only for the same version.
  size_t version() const { return version_; }
  cublasLtHandle_t handle() const { return handle_; }

  // NOLINTBEGIN(readability-identifier-naming): called like functions
  decltype(&cublasLtCreate) Create = nullptr;
  decltype(&cublasLtDestroy) Destroy = nullptr;
  decltype(&cublasLtGetVersion) GetVersion = nullptr;
  decltype(&cublasLtMatmul) Matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate = nullptr;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) MatmulAlgoCheck = nullptr;
  // NOLINTEND(readability-identifier-naming)

 private:
  CublasLt() = default;
  Status Load(void* library);
  template <class Function>
  Status Find(Function* function, const char* name);

  void* library_ = nullptr;
  std::string path_;
  cublasLtHandle_t handle_ = nullptr;
  size_t version_ = 0;
};

/// kOk, or kInternal with `what` and the library's code.
Status CublasStatus(cublasStatus_t status, const char* what);

}  // namespace bouquet::rose::cuda
