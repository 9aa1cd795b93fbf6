#pragma once

#include <cstdint>

#include "base/status.h"
#include "rose/backend/backend.h"

namespace bouquet::rose {

/// Where MPNet's buckets end: every distance from here on falls into the last one of its side.
inline constexpr int32_t kFarthestBucketDistance = 128;
inline constexpr int32_t kDistanceBuckets = 32;

/// The bucket of `distance` = j − i (key minus query), as T5 numbers them (Raffel et al. 2020,
/// section 2.1): 0 .. 15 for keys up to the query, 16 .. 31 behind it; in each half one per
/// distance below 8, then eight on a logarithmic scale up to kFarthestBucketDistance.
int32_t DistanceBucket(int32_t distance);

/// Expands a table of one learned number per bucket and head, [kDistanceBuckets, num_heads], into
/// RelativeBias::table with max_distance kFarthestBucketDistance. Error: as Backend::Allocate.
Result<Tensor> ExpandRelativeBias(const HostTensor& buckets, Backend& backend);

}  // namespace bouquet::rose
