#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/backend.h"
#include "rose/backend/conformance/tolerance.h"
#include "rose/backend/factory.h"
#include "rose/tensor/convert.h"

namespace bouquet::rose {

/// One way to compute: every suite runs on each.
struct BackendVariant {
  std::string isa;  // of a CPU; "cuda" is the first CUDA device
  Dtype dtype = Dtype::kFloat32;
  int32_t threads = 1;
  bool is_cuda() const { return isa == "cuda"; }
};

/// bfloat16 without instructions for it shares all but two functions with the native path, so one
/// thread count each is enough.
inline std::vector<BackendVariant> CpuVariants() {
  return {{"plain", Dtype::kFloat32, 1},       {"plain", Dtype::kFloat32, 2},
          {"plain", Dtype::kBfloat16, 1},      {"avx2", Dtype::kFloat32, 1},
          {"avx2", Dtype::kFloat32, 2},        {"avx2", Dtype::kBfloat16, 2},
          {"avx512", Dtype::kFloat32, 1},      {"avx512", Dtype::kFloat32, 2},
          {"avx512", Dtype::kBfloat16, 1},     {"avx512_bf16", Dtype::kBfloat16, 1},
          {"avx512_bf16", Dtype::kBfloat16, 2}};
}

inline std::vector<BackendVariant> CudaVariants() {
#ifdef BOUQUET_CUDA
  return {{"cuda", Dtype::kBfloat16, 1}};
#else
  return {};
#endif
}

inline std::string ToString(const BackendVariant& variant) {
  return variant.isa + "_" + std::string(DtypeName(variant.dtype)) + "_" +
         std::to_string(variant.threads) + (variant.threads == 1 ? "thread" : "threads");
}
inline void PrintTo(const BackendVariant& variant, std::ostream* out) { *out << ToString(variant); }
inline std::string VariantName(const ::testing::TestParamInfo<BackendVariant>& info) {
  return ToString(info.param);
}

/// A float matrix in the backend's memory and the same values, rounded to its dtype, for the
/// reference loops.
struct TestMatrix {
  Tensor tensor;
  std::vector<float> values;
  int64_t rows = 0;
  int64_t cols = 0;
  TensorView view() const { return tensor.view(); }
  double at(int64_t row, int64_t col) const {
    return values[static_cast<size_t>(row * cols + col)];
  }
};

/// Base of the conformance suites. Matrices that an op writes are full of NaN before it runs, so a
/// value that was not written, or that was read before it was, shows.
class BackendTest : public ::testing::TestWithParam<BackendVariant> {
 protected:
  static constexpr int32_t kMaxTokens = 2048;
  static constexpr int32_t kMaxSequences = 128;
  static constexpr int32_t kMaxRows = 512;

  void SetUp() override {
    BackendOptions options;
    options.compute_dtype = GetParam().dtype;
    if (GetParam().is_cuda()) {
      options.device = "cuda";
      options.pad_steps = false;
      options.graphs = GraphMode::kOff;  // every step runs other ops
    } else {
      options.threads = GetParam().threads;
      options.isa = GetParam().isa;
    }
    Result<std::unique_ptr<Backend>> backend = CreateBackend(options);
    if (backend.code() == StatusCode::kUnimplemented) {
      GTEST_SKIP() << backend.status().message();
    }
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    backend_ = std::move(backend).value();
  }

  Dtype dtype() const { return GetParam().dtype; }
  Backend& backend() { return *backend_; }

  void FinishLoading() {
    ASSERT_TRUE(backend_->FinishLoading(kMaxTokens, kMaxSequences, kMaxRows).ok());
  }

  /// Runs `forward` as one step and waits for it.
  void RunStep(const std::function<void()>& forward) {
    Run({}, [&forward](const StepInputs&) { forward(); });
  }
  /// The same with the inputs, which `forward` finds in the backend's memory.
  void RunStep(const StepInputs& inputs, const std::function<void(const StepInputs&)>& forward) {
    StepSlotMemory slot;
    slot.host = inputs;
    Run(slot, forward);
  }
  void Run(const StepSlotMemory& slot, const std::function<void(const StepInputs&)>& forward) {
    ASSERT_TRUE(backend_->RunStep(slot, forward)->Wait().ok());
  }

  std::vector<float> RandomValues(int64_t count, float scale = 1.0F, float centre = 0.0F) {
    std::normal_distribution<float> normal(centre, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = normal(random_);
    }
    return values;
  }

  TestMatrix Matrix(Dtype matrix_dtype, int64_t rows, int64_t cols, std::vector<float> values) {
    TestMatrix matrix;
    matrix.rows = rows;
    matrix.cols = cols;
    Result<Tensor> tensor = backend_->Allocate(matrix_dtype, rows, cols);
    EXPECT_TRUE(tensor.ok());
    matrix.tensor = std::move(tensor).value();
    matrix.values = std::move(values);
    std::vector<std::byte> rounded(static_cast<size_t>(rows * cols) * DtypeBytes(matrix_dtype));
    ConvertElements(matrix.values.data(), Dtype::kFloat32, rounded.data(), matrix_dtype,
                    rows * cols);
    ConvertElements(rounded.data(), matrix_dtype, matrix.values.data(), Dtype::kFloat32,
                    rows * cols);
    EXPECT_TRUE(backend_->CopyIn(rounded.data(), matrix.view()).ok());
    return matrix;
  }
  TestMatrix RandomMatrix(Dtype matrix_dtype, int64_t rows, int64_t cols, float scale = 1.0F,
                          float centre = 0.0F) {
    return Matrix(matrix_dtype, rows, cols, RandomValues(rows * cols, scale, centre));
  }
  TestMatrix PoisonedMatrix(Dtype matrix_dtype, int64_t rows, int64_t cols) {
    return Matrix(matrix_dtype, rows, cols,
                  std::vector<float>(static_cast<size_t>(rows * cols),
                                     std::numeric_limits<float>::quiet_NaN()));
  }
  /// What the backend has written.
  void Fetch(TestMatrix* matrix) {
    const TensorView view = matrix->view();
    std::vector<std::byte> written(matrix->values.size() * DtypeBytes(view.dtype));
    ASSERT_TRUE(backend_->CopyOut(view, written.data()).ok());
    ConvertElements(written.data(), view.dtype, matrix->values.data(), Dtype::kFloat32,
                    matrix->rows * matrix->cols);
  }

  std::mt19937& random() { return random_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::mt19937 random_{20261129};
};

/// Sequences of given lengths lying end to end, with all that a step's inputs hold. One row each,
/// from all tokens, until `ranges` says otherwise.
struct TestBatch {
  std::vector<int32_t> token_ids;
  std::vector<int32_t> token_type_ids;
  std::vector<int32_t> positions;
  std::vector<int32_t> offsets{0};
  std::vector<PoolingRange> ranges;
  std::vector<int32_t> dimensions;
  std::vector<model::RowDtype> dtypes;
  std::vector<uint8_t> normalize;

  explicit TestBatch(const std::vector<int32_t>& lengths, int32_t width = 1) {
    for (const int32_t length : lengths) {
      for (int32_t position = 0; position < length; ++position) {
        positions.push_back(position);
      }
      const int32_t first = offsets.back();
      offsets.push_back(first + length);
      AddRow({first, first, first + length}, width);
    }
    token_ids.assign(positions.size(), 0);
    token_type_ids.assign(positions.size(), 0);
  }

  void AddRow(const PoolingRange& range, int32_t width,
              model::RowDtype dtype = model::RowDtype::kFloat32, bool is_normalized = true) {
    ranges.push_back(range);
    dimensions.push_back(width);
    dtypes.push_back(dtype);
    normalize.push_back(is_normalized ? 1 : 0);
  }
  void ClearRows() {
    ranges.clear();
    dimensions.clear();
    dtypes.clear();
    normalize.clear();
  }

  StepInputs inputs() const {
    StepInputs inputs;
    inputs.num_tokens = static_cast<int32_t>(positions.size());
    inputs.num_sequences = static_cast<int32_t>(offsets.size()) - 1;
    inputs.num_rows = static_cast<int32_t>(ranges.size());
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      inputs.longest_sequence = std::max(inputs.longest_sequence, offsets[i + 1] - offsets[i]);
    }
    inputs.token_ids = token_ids.data();
    inputs.token_type_ids = token_type_ids.data();
    inputs.positions = positions.data();
    inputs.sequence_offsets = offsets.data();
    inputs.pooling_ranges = ranges.data();
    inputs.dimensions = dimensions.data();
    inputs.row_dtypes = dtypes.data();
    inputs.normalize = normalize.data();
    return inputs;
  }
};

#define INSTANTIATE_ON_CPUS(suite) \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, ::testing::ValuesIn(CpuVariants()), VariantName)

#define INSTANTIATE_ON_ALL_BACKENDS(suite)              \
  INSTANTIATE_ON_CPUS(suite);                           \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
  INSTANTIATE_TEST_SUITE_P(Gpu, suite, ::testing::ValuesIn(CudaVariants()), VariantName)

}  // namespace bouquet::rose
