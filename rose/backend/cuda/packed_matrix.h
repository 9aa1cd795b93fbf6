#pragma once

#include <memory>

#include "base/status.h"
#include "rose/backend/cuda/device_memory.h"
#include "rose/backend/cuda/weight_upload.h"
#include "rose/backend/op_desc.h"

namespace bouquet::rose::cuda {

/// A layer's weight on the device: [stacked out_features, stride] with rows of a multiple of 8
/// elements, the rest of a row zero; the bias in the same dtype. The rows of a gated layer are laid
/// out gate 0, up 0, gate 1, up 1, …, so that a pair lies side by side in the product.
class PackedMatrix final : public PackedWeight {
 public:
  template <class T>
  const T* weight() const {
    return reinterpret_cast<const T*>(weight_.get());
  }
  /// Null without bias.
  template <class T>
  const T* bias() const {
    return reinterpret_cast<const T*>(bias_.get());
  }
  int64_t stride() const { return stride_; }
  int64_t product_width() const { return gated_ ? 2 * out_features : out_features; }
  Dtype dtype() const { return dtype_; }
  bool gated() const { return gated_; }
  Activation activation() const { return activation_; }

  /// Error: kInvalidArgument for shapes that do not fit together, kResourceExhausted without
  /// memory.
  static Result<std::unique_ptr<PackedWeight>> Make(const LinearDesc& desc, Dtype dtype,
                                                    DeviceAllocator& allocator,
                                                    WeightUpload& upload);

 private:
  DeviceMemory weight_;
  DeviceMemory bias_;
  int64_t stride_ = 0;
  Dtype dtype_ = Dtype::kBfloat16;
  bool gated_ = false;
  Activation activation_ = Activation::kNone;
};

}  // namespace bouquet::rose::cuda
