#include "rose/backend/cuda/cublas_lt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace bouquet::rose::cuda {
namespace {

namespace fs = std::filesystem;

const std::string kFile = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);

void AddFolder(const fs::path& folder, std::vector<std::string>& candidates) {
  std::error_code ignored;
  if (const fs::path file = folder / kFile; fs::exists(file, ignored)) {
    candidates.push_back(file.string());
  }
}

/// The wheels of NVIDIA below a Python environment: lib/python3.*/site-packages/nvidia/….
void AddPythonFolders(const fs::path& environment, std::vector<std::string>& candidates) {
  std::error_code error;
  for (const char* lib : {"lib", "local/lib"}) {
    for (const auto& python : fs::directory_iterator(environment / lib, error)) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const char* part : {"nvidia/cu13/lib", "nvidia/cublas/lib"}) {
          AddFolder(python.path() / packages / part, candidates);
        }
      }
    }
  }
}

/// The environment of the first python3 in PATH, where PyTorch brings the library along.
void AddPythonInPath(std::vector<std::string>& candidates) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const fs::path folder(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    std::error_code ignored;
    if (fs::exists(folder / "python3", ignored)) {
      AddPythonFolders(folder.parent_path(), candidates);
    }
  }
}

std::vector<std::string> Candidates() {
  std::vector<std::string> candidates;
  if (const char* folder = std::getenv("BOUQUET_CUDA_LIBRARIES"); folder != nullptr) {
    AddFolder(folder, candidates);
  }
  candidates.push_back(kFile);  // as the loader finds it
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(name); home != nullptr) {
      AddFolder(fs::path(home) / "lib64", candidates);
    }
  }
  AddFolder("/usr/local/cuda/lib64", candidates);
  AddPythonInPath(candidates);
  return candidates;
}

}  // namespace

Status CublasStatus(cublasStatus_t status, const char* what) {
  return status == CUBLAS_STATUS_SUCCESS
             ? Status()
             : Internal(fmt::format("{}: cuBLASLt status {}", what, static_cast<int>(status)));
}

Result<std::unique_ptr<CublasLt>> CublasLt::Open() {
  std::string tried;
  for (const std::string& candidate : Candidates()) {
    if (void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      std::unique_ptr<CublasLt> lt(new CublasLt());
      lt->path_ = candidate;
      RETURN_IF_ERROR(lt->Load(library));
      return lt;
    }
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", candidate);
  }
  return NotFound(
      fmt::format("cuBLASLt cannot be opened: looked for {}; install the CUDA {} "
                  "toolkit or set BOUQUET_CUDA_LIBRARIES to the folder that holds it",
                  tried, CUBLAS_VER_MAJOR));
}

template <class Function>
Status CublasLt::Find(Function* function, const char* name) {
  // POSIX demands that a pointer to data may be taken for one to a function here.
  *function = reinterpret_cast<Function>(dlsym(library_, name));
  return *function == nullptr ? NotFound(fmt::format("{} has no function {}", path_, name))
                              : Status();
}

Status CublasLt::Load(void* library) {
  library_ = library;
  RETURN_IF_ERROR(Find(&Create, "cublasLtCreate"));
  RETURN_IF_ERROR(Find(&Destroy, "cublasLtDestroy"));
  RETURN_IF_ERROR(Find(&GetVersion, "cublasLtGetVersion"));
  RETURN_IF_ERROR(Find(&Matmul, "cublasLtMatmul"));
  RETURN_IF_ERROR(Find(&MatmulDescCreate, "cublasLtMatmulDescCreate"));
  RETURN_IF_ERROR(Find(&MatmulDescDestroy, "cublasLtMatmulDescDestroy"));
  RETURN_IF_ERROR(Find(&MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute"));
  RETURN_IF_ERROR(Find(&MatrixLayoutCreate, "cublasLtMatrixLayoutCreate"));
  RETURN_IF_ERROR(Find(&MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy"));
  RETURN_IF_ERROR(Find(&MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate"));
  RETURN_IF_ERROR(Find(&MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy"));
  RETURN_IF_ERROR(Find(&MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute"));
  RETURN_IF_ERROR(Find(&MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic"));
  RETURN_IF_ERROR(Find(&MatmulAlgoCheck, "cublasLtMatmulAlgoCheck"));
  version_ = GetVersion();
  if (version_ / 10000 != CUBLAS_VER_MAJOR) {
    return Unimplemented(
        fmt::format("{} is version {}, and {}.x is needed", path_, version_, CUBLAS_VER_MAJOR));
  }
  return CublasStatus(Create(&handle_), "cuBLASLt cannot be started");
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) {
    Destroy(handle_);
  }
  if (library_ != nullptr) {
    dlclose(library_);
  }
}

}  // namespace bouquet::rose::cuda
