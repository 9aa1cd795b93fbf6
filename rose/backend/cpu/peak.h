#pragma once

#include "rose/backend/cpu/cpu_features.h"
#include "rose/tensor/dtype.h"

namespace bouquet::rose::cpu {

/// Multiply-adds in registers only, as many at once as the instruction set has registers for: about
/// a tenth of a millisecond. Returns the FLOP done; 0 where `isa` does not multiply `dtype`
/// (bfloat16: kAvx512Bf16 only). `sink` takes the sums, so that they are computed. The processor
/// must have `isa`.
double MultiplyAdd(Isa isa, Dtype dtype, float* sink);

/// FLOP/s of MultiplyAdd on one core of this machine now: the best of 0.2 s. Benchmarks quote
/// shares of it, measured in the same run.
double MeasurePeakFlops(Isa isa, Dtype dtype);

}  // namespace bouquet::rose::cpu
