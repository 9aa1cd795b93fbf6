#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace bouquet::tulip {

/// How long a step of so many tokens takes on this machine: a curve, measured when the core starts
/// and refined by every step. Everything that is stated in time follows from it: the default step
/// size, the queue's limit in tokens, Retry-After, the moment to launch. Pure.
///
/// The curve is one point (mean tokens, mean µs) per power of two, straight lines between them,
/// the first point's time below the first (a short step streams the weights all the same) and the
/// last point's time per token above the last.
class StepCost {
 public:
  struct Point {
    int32_t tokens = 0;
    double step_us = 0;
  };

  /// `measured` may be empty: then a token costs `kUnknownTokenUs` until a step has been seen.
  explicit StepCost(std::span<const Point> measured);

  /// Takes a step into account: the point of its size moves an eighth of the way. So a change of
  /// traffic shows after some twenty steps, and one step that was disturbed hardly does.
  void Observe(int32_t tokens, double step_us);

  double StepUs(int32_t tokens) const;
  double TokensPerSecond(int32_t step_tokens) const;

  /// The smallest point within 3 % of the best throughput seen, for it has the best latency; at
  /// least kMinDefaultStepTokens, below which handing a step over costs a notable share of it.
  int32_t DefaultStepTokens(int32_t max_step_tokens) const;

 private:
  static constexpr double kUnknownTokenUs = 100;
  static constexpr double kWeightOfNew = 0.125;
  static constexpr int32_t kMinDefaultStepTokens = 256;

  struct Bucket {
    double mean_tokens = 0;  // 0: nothing seen
    double mean_us = 0;
  };
  std::array<Bucket, 31> buckets_;  // bucket i: 2^i .. 2^(i+1) - 1 tokens
};

}  // namespace bouquet::tulip
