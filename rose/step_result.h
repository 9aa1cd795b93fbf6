#pragma once

#include <cstdint>
#include <span>

#include "model/row_block.h"

namespace bouquet::rose {

enum class RowStatus : uint8_t {
  kOk,
  kNotFinite,  // the row holds a NaN or an infinity; it must not leave the server
};

/// What a step produced: one block per head, and a status per sequence. Views into the step's ring
/// slot: valid until the LazyTensor that returned it is destroyed or its engine has started as many
/// further steps as may be under way.
struct StepResult {
  std::span<const model::RowBlock> blocks;  // one per head
  std::span<const RowStatus> statuses;      // [num_sequences]: of several rows the worst
};

}  // namespace bouquet::rose
