#include "rose/backend/cuda/packed_matrix.h"

#include <vector>

#include "rose/backend/linear_shapes.h"

namespace bouquet::rose::cuda {
namespace {

/// Copies stacked matrices [rows_i, cols] to rows of `target`. In a gated layer output feature i of
/// the first half goes to row 2i, of the second half to row 2i + 1.
Status CopyStacked(const std::vector<HostTensor>& sources, int64_t cols, int64_t total_rows,
                   bool gated, std::byte* target, Dtype dtype, int64_t stride,
                   WeightUpload& upload) {
  const auto row_bytes = static_cast<int64_t>(DtypeBytes(dtype)) * stride;
  const int64_t half = total_rows / 2;
  int64_t done = 0;
  for (const HostTensor& source : sources) {
    // A bias is [1, n] or [n, 1] in a file, and here a matrix of one column.
    const int64_t rows = source.rows * source.cols / cols;
    for (int64_t row = 0; row < rows;) {
      const int64_t feature = done + row;
      const bool is_up = gated && feature >= half;
      const int64_t until = gated && !is_up ? std::min(rows, half - done) : rows;
      const int64_t first = !gated ? feature : is_up ? 2 * (feature - half) + 1 : 2 * feature;
      const auto offset = row * cols * static_cast<int64_t>(DtypeBytes(source.dtype));
      RETURN_IF_ERROR(upload.Copy(
          {static_cast<const std::byte*>(source.data) + offset, source.dtype, until - row, cols},
          target + first * row_bytes, dtype, gated ? 2 * stride : stride));
      row = until;
    }
    done += rows;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<PackedWeight>> PackedMatrix::Make(const LinearDesc& desc, Dtype dtype,
                                                         DeviceAllocator& allocator,
                                                         WeightUpload& upload) {
  RETURN_IF_ERROR(CheckLinearDesc(desc));
  constexpr int64_t kAlignment = 8;
  auto packed = std::make_unique<PackedMatrix>();
  const int64_t rows = desc.out_features();
  packed->in_features = desc.in_features();
  packed->out_features = desc.gated ? rows / 2 : rows;
  packed->stride_ = (packed->in_features + kAlignment - 1) / kAlignment * kAlignment;
  packed->dtype_ = dtype;
  packed->gated_ = desc.gated;
  packed->activation_ = desc.activation;
  const size_t bytes = static_cast<size_t>(rows * packed->stride_) * DtypeBytes(dtype);
  packed->bytes = static_cast<int64_t>(bytes);
  ASSIGN_OR_RETURN(packed->weight_, allocator.Allocate(bytes, "weights"));
  RETURN_IF_ERROR(CopyStacked(desc.weights, packed->in_features, rows, desc.gated,
                              packed->weight_.get(), dtype, packed->stride_, upload));
  if (!desc.biases.empty()) {
    ASSIGN_OR_RETURN(packed->bias_,
                     allocator.Allocate(static_cast<size_t>(rows) * DtypeBytes(dtype), "a bias"));
    RETURN_IF_ERROR(
        CopyStacked(desc.biases, 1, rows, desc.gated, packed->bias_.get(), dtype, 1, upload));
  }
  return std::unique_ptr<PackedWeight>(std::move(packed));
}

}  // namespace bouquet::rose::cuda
