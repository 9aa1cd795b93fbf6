#pragma once

#include "base/status.h"
#include "rose/backend/op_desc.h"

namespace bouquet::rose {

/// What every backend demands of a layer before it packs it. Error: kInvalidArgument that names the
/// shapes or the dtype that do not fit.
Status CheckLinearDesc(const LinearDesc& desc);

}  // namespace bouquet::rose
