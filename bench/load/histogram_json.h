#pragma once

#include "base/json.h"
#include "base/json_writer.h"
#include "base/status.h"
#include "bench/load/histogram.h"

namespace bouquet::bench {

/// {"min_ns", "max_ns", "sum_ns", "buckets": [[middle in ns, count], …]}. Nothing is lost.
void AppendHistogram(const Histogram& histogram, JsonWriter& json);

/// Error: kInvalidArgument.
Result<Histogram> ReadHistogram(const JsonObject& object,
                                int precision_bits = Histogram::kDefaultPrecisionBits);

}  // namespace bouquet::bench
