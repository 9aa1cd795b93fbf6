#include "rose/backend/cpu/packed_linear.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "rose/backend/linear_shapes.h"
#include "rose/tensor/convert.h"

namespace bouquet::rose::cpu {
namespace {

/// Where output features come from: row `row` of source `source`.
struct FeatureSource {
  size_t source = 0;
  int64_t row = 0;
};

FeatureSource SourceOf(const LinearDesc& desc, int64_t feature) {
  FeatureSource result{0, feature};
  while (result.row >= desc.weights[result.source].rows) {
    result.row -= desc.weights[result.source].rows;
    ++result.source;
  }
  return result;
}

/// The output feature in a column of a panel, or -1 for a column that fills up.
int64_t FeatureAt(const LinearDesc& desc, int64_t panel, int64_t column, int64_t panel_columns) {
  if (!desc.gated) {
    const int64_t feature = panel * panel_columns + column;
    return feature < desc.out_features() ? feature : -1;
  }
  const int64_t half = panel_columns / 2;
  const int64_t width = desc.out_features() / 2;
  const int64_t index = panel * half + column % half;
  if (index >= width) {
    return -1;
  }
  return column < half ? index : width + index;
}

/// A run of one weight row converted to T.
template <class T>
void ReadRow(const LinearDesc& desc, int64_t feature, Dtype dtype, T* row) {
  const FeatureSource from = SourceOf(desc, feature);
  const HostTensor& weight = desc.weights[from.source];
  const auto* bytes = static_cast<const std::byte*>(weight.data) +
                      from.row * weight.cols * static_cast<int64_t>(DtypeBytes(weight.dtype));
  ConvertElements(bytes, weight.dtype, row, dtype, weight.cols);
}

/// T: float, or uint16_t for bfloat16.
template <class T>
void FillPanel(const LinearDesc& desc, Dtype dtype, int64_t panel, int64_t panel_columns,
               std::vector<T>* rows, T* out) {
  constexpr int64_t kStep = sizeof(T) == 2 ? 2 : 1;
  const int64_t inner = desc.in_features();
  const int64_t padded = (inner + kStep - 1) / kStep * kStep;
  std::fill(rows->begin(), rows->end(), T{});
  for (int64_t column = 0; column < panel_columns; ++column) {
    const int64_t feature = FeatureAt(desc, panel, column, panel_columns);
    if (feature >= 0) {
      ReadRow(desc, feature, dtype, rows->data() + column * padded);
    }
  }
  for (int64_t k = 0; k < padded; k += kStep) {
    for (int64_t column = 0; column < panel_columns; ++column) {
      for (int64_t i = 0; i < kStep; ++i) {
        *out++ = (*rows)[static_cast<size_t>(column * padded + k + i)];
      }
    }
  }
}

template <class T>
void FillPanels(const LinearDesc& desc, Dtype dtype, int64_t num_panels, int64_t panel_columns,
                int64_t panel_elements, std::byte* out) {
  std::vector<T> rows(static_cast<size_t>(panel_elements));
  for (int64_t panel = 0; panel < num_panels; ++panel) {
    FillPanel<T>(desc, dtype, panel, panel_columns, &rows,
                 reinterpret_cast<T*>(out) + panel * panel_elements);
  }
}

}  // namespace

Result<std::unique_ptr<PackedWeight>> PackedLinear::Make(const LinearDesc& desc, Dtype dtype,
                                                         int32_t panel_columns) {
  RETURN_IF_ERROR(CheckLinearDesc(desc));
  auto packed = std::make_unique<PackedLinear>();
  const int64_t width = desc.gated ? desc.out_features() / 2 : desc.out_features();
  const int64_t columns_per_panel = desc.gated ? panel_columns / 2 : panel_columns;
  const int64_t step = dtype == Dtype::kBfloat16 ? 2 : 1;
  const int64_t panel_elements = (desc.in_features() + step - 1) / step * step * panel_columns;
  packed->num_panels_ = (width + columns_per_panel - 1) / columns_per_panel;
  packed->in_features = desc.in_features();
  packed->out_features = width;
  packed->dtype_ = dtype;
  packed->gated_ = desc.gated;
  packed->activation_ = desc.activation;
  packed->bytes = packed->num_panels_ * panel_elements * static_cast<int64_t>(DtypeBytes(dtype));

  packed->panels_ = HugeMemory::Allocate(static_cast<size_t>(packed->bytes));
  if (packed->panels_.data() == nullptr) {
    return ResourceExhausted(fmt::format("no memory for a weight: {} bytes", packed->bytes));
  }
  if (dtype == Dtype::kBfloat16) {
    FillPanels<uint16_t>(desc, dtype, packed->num_panels_, panel_columns, panel_elements,
                         packed->panels_.data());
  } else {
    FillPanels<float>(desc, dtype, packed->num_panels_, panel_columns, panel_elements,
                      packed->panels_.data());
  }
  if (!desc.biases.empty()) {
    const auto count = static_cast<size_t>(packed->num_panels_ * panel_columns);
    packed->bias_ = MakeAlignedArray<float>(count);
    for (size_t i = 0; i < count; ++i) {
      const auto position = static_cast<int64_t>(i);
      const int64_t feature =
          FeatureAt(desc, position / panel_columns, position % panel_columns, panel_columns);
      packed->bias_[i] = 0;
      if (feature >= 0) {
        const FeatureSource from = SourceOf(desc, feature);
        const HostTensor& bias = desc.biases[from.source];
        ConvertElements(static_cast<const std::byte*>(bias.data) +
                            from.row * static_cast<int64_t>(DtypeBytes(bias.dtype)),
                        bias.dtype, &packed->bias_[i], Dtype::kFloat32, 1);
      }
    }
  }
  return Result<std::unique_ptr<PackedWeight>>(std::move(packed));
}

}  // namespace bouquet::rose::cpu
