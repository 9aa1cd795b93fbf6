#include "rose/backend/cuda/weight_upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "rose/backend/cuda/kernels/convert.h"

namespace bouquet::rose::cuda {
namespace {

constexpr size_t kStageBytes = size_t{16} << 20;

}  // namespace

Result<std::unique_ptr<WeightUpload>> WeightUpload::Make(DeviceAllocator& allocator,
                                                         cudaStream_t stream) {
  std::unique_ptr<WeightUpload> upload(new WeightUpload());
  upload->stream_ = stream;
  for (Stage& stage : upload->stages_) {
    ASSIGN_OR_RETURN(stage.host, AllocatePinned(kStageBytes));
    ASSIGN_OR_RETURN(stage.device, allocator.Allocate(kStageBytes, "loading weights"));
    ASSIGN_OR_RETURN(stage.done, Event::Create());
  }
  return upload;
}

Status WeightUpload::Copy(const HostTensor& source, void* target, Dtype dtype,
                          int64_t target_stride) {
  const auto row_bytes = static_cast<size_t>(source.cols) * DtypeBytes(source.dtype);
  if (row_bytes == 0 || source.rows == 0) {
    return {};
  }
  CHECK_LE(row_bytes, kStageBytes);
  const auto rows_at_once = static_cast<int64_t>(kStageBytes / row_bytes);
  for (int64_t row = 0; row < source.rows; row += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, source.rows - row);
    const size_t bytes = static_cast<size_t>(rows) * row_bytes;
    Stage& stage = stages_[next_];
    next_ = 1 - next_;
    stage.done.Wait();
    std::memcpy(stage.host.get(),
                static_cast<const std::byte*>(source.data) + static_cast<size_t>(row) * row_bytes,
                bytes);
    RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(stage.device.get(), stage.host.get(), bytes,
                                               cudaMemcpyHostToDevice, stream_),
                               "a weight could not be copied to the device"));
    LaunchConvert({.source = stage.device.get(),
                   .from = source.dtype,
                   .target = static_cast<std::byte*>(target) +
                             static_cast<size_t>(row * target_stride) * DtypeBytes(dtype),
                   .to = dtype,
                   .target_stride = target_stride,
                   .rows = rows,
                   .cols = source.cols},
                  stream_);
    stage.done.Record(stream_);
  }
  return {};
}

}  // namespace bouquet::rose::cuda
