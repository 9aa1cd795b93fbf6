#pragma once

#include <cstdint>

namespace bouquet::rose::cpu {

/// Keys that are in scratch at a time. Most inputs of an encoder fit one block: no running maximum
/// to correct, and keys are packed once for all runs of queries.
inline constexpr int32_t kKeyBlock = 512;
/// Distance of packed key rows and of score rows, in floats. Off a power of two, or the rows of a
/// tile would compete for the same sets of the first-level cache.
inline constexpr int64_t kKeyStride = kKeyBlock + 16;
/// Rows of (query, head of the group) per run.
inline constexpr int32_t kQueryBlock = 192;
/// Packed values are padded to this many columns: a whole tile of any instruction set.
inline constexpr int64_t kHeadDimMultiple = 32;

}  // namespace bouquet::rose::cpu
