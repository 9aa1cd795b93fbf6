#pragma once

#include <cstdint>

namespace bouquet::model {

/// What waits behind what: interactive work goes first; bulk work ages into interactive, so it is
/// never starved.
enum class TrafficClass : uint8_t { kInteractive, kBulk };

}  // namespace bouquet::model
