#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "model/pipeline.h"
#include "rose/heads/dense_head.h"

namespace bouquet::rose {

/// A Dense module: act(W·x + b), plus x, or a projected x where the widths differ, with
/// `use_residual`. Takes linear.weight, linear.bias and residual.weight from the module's folder.
/// Error: kNotFound or kInvalidArgument naming tensor and file.
Result<std::unique_ptr<RowStage>> LoadDenseLayer(const model::DenseModule& module, int32_t max_rows,
                                                 Backend& backend);

}  // namespace bouquet::rose
