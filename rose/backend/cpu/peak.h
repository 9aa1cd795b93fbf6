#pragma once

namespace bouquet::rose::cpu {

/// Float32 multiply-adds per second that one core of this machine reaches now, in FLOP/s: registers
/// only, AVX-512 where there is one, else AVX2, else the compiler's best. Benchmarks quote shares
/// of it, measured in the same run. Takes about 0.2 s.
double MeasurePeakFlops();

}  // namespace bouquet::rose::cpu
