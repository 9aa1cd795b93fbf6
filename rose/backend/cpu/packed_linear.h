#pragma once

#include <memory>

#include "base/status.h"
#include "rose/backend/backend.h"
#include "rose/backend/cpu/cpu_memory.h"
#include "rose/backend/op_desc.h"

namespace bouquet::rose::cpu {

/// Weights in panels, the order in which the GEMM kernel reads them: a panel is `panel_columns`
/// output features, stored [in_features][panel_columns], in bfloat16 as pairs of inner rows,
/// [in_features / 2][panel_columns][2]. The last panel and an odd last row are filled up with
/// zeros.
///
/// Gated layers put half a panel of gates beside the same half panel of ups, so that both are in
/// registers when the product ends.
class PackedLinear final : public PackedWeight {
 public:
  const void* panels() const { return panels_.data(); }
  /// [num_panels][panel_columns] float32, or null.
  const float* bias() const { return bias_.get(); }
  int64_t num_panels() const { return num_panels_; }
  Dtype dtype() const { return dtype_; }
  bool gated() const { return gated_; }
  Activation activation() const { return activation_; }

  /// Error: kInvalidArgument for shapes that do not fit together or a dtype that is no float,
  /// kResourceExhausted without memory.
  static Result<std::unique_ptr<PackedWeight>> Make(const LinearDesc& desc, Dtype dtype,
                                                    int32_t panel_columns);

 private:
  HugeMemory panels_;
  AlignedArray<float> bias_;
  int64_t num_panels_ = 0;
  Dtype dtype_ = Dtype::kFloat32;
  bool gated_ = false;
  Activation activation_ = Activation::kNone;
};

}  // namespace bouquet::rose::cpu
