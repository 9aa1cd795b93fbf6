#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>

namespace bouquet::simulation {

/// Numbers that follow from a seed alone, the same on every machine (splitmix64, and no
/// distribution of a library). Each part of a world has a fork of its own, so that a draw more in
/// one does not change another.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  Random Fork() { return Random(Next()); }

  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  /// least .. most, both included.
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(Next() % static_cast<uint64_t>(most - least + 1));
  }
  /// [0, 1)
  double Unit() { return static_cast<double>(Next() >> 11) / static_cast<double>(1ULL << 53); }
  bool Chance(double probability) { return Unit() < probability; }

  /// least .. most, every doubling as likely as the next: mostly small, sometimes large.
  int64_t Skewed(int64_t least, int64_t most) {
    const int64_t first = std::max<int64_t>(least, 1);
    const int64_t doublings =
        std::bit_width(static_cast<uint64_t>(std::max<int64_t>(most / first, 1)));
    const int64_t low = first << Between(0, doublings - 1);
    return Between(std::min(std::max(low, least), most), std::min(2 * low, most));
  }
  std::chrono::microseconds SkewedUs(int64_t least, int64_t most) {
    return std::chrono::microseconds(Skewed(least, most));
  }
  std::chrono::milliseconds SkewedMs(int64_t least, int64_t most) {
    return std::chrono::milliseconds(Skewed(least, most));
  }

 private:
  uint64_t state_;
};

}  // namespace bouquet::simulation
