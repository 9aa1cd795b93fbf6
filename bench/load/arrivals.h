#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace bouquet::bench {

/// How an open loop sends: when requests start does not depend on how fast answers come.
struct ArrivalPlan {
  enum class Spacing : uint8_t {
    kEven,     // 1 / rate between two
    kPoisson,  // exponentially distributed gaps of that mean: many independent clients
  };
  struct Phase {
    double per_second = 0;  // of all client processes together; > 0
    std::chrono::nanoseconds duration{0};
  };

  Spacing spacing = Spacing::kPoisson;
  uint64_t seed = 1;
  std::vector<Phase> phases;  // one after the other

  std::chrono::nanoseconds TotalDuration() const;
};

/// The moments at which one of `num_parts` processes sends, counted from the start of the plan.
/// Every part walks the same moments and takes every `num_parts`-th, so all parts together send the
/// same schedule whatever their number.
class Arrivals {
 public:
  Arrivals(ArrivalPlan plan, size_t part, size_t num_parts);

  /// The next moment; nullopt when the plan has ended.
  std::optional<std::chrono::nanoseconds> Next();

 private:
  std::optional<std::chrono::nanoseconds> NextOfAll();
  double Gap(double per_second);

  ArrivalPlan plan_;
  size_t part_;
  size_t num_parts_;
  std::mt19937_64 random_;
  size_t index_ = 0;  // of the next arrival of all parts
  size_t phase_ = 0;
  double phase_start_s_ = 0;
  double in_phase_s_ = 0;      // the last arrival, from the phase's start
  int64_t even_in_phase_ = 0;  // arrivals given in this phase
};

}  // namespace bouquet::bench
