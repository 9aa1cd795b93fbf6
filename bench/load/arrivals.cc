#include "bench/load/arrivals.h"

#include <cmath>
#include <utility>

#include "base/check.h"

namespace bouquet::bench {
namespace {

double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::chrono::nanoseconds ArrivalPlan::TotalDuration() const {
  std::chrono::nanoseconds total{0};
  for (const Phase& phase : phases) {
    total += phase.duration;
  }
  return total;
}

Arrivals::Arrivals(ArrivalPlan plan, size_t part, size_t num_parts)
    : plan_(std::move(plan)), part_(part), num_parts_(num_parts), random_(plan_.seed) {
  CHECK_LT(part, num_parts);
  for (const ArrivalPlan::Phase& phase : plan_.phases) {
    CHECK(phase.per_second > 0);
  }
}

std::optional<std::chrono::nanoseconds> Arrivals::Next() {
  for (;;) {
    const std::optional<std::chrono::nanoseconds> at = NextOfAll();
    if (!at || index_++ % num_parts_ == part_) {
      return at;
    }
  }
}

/// By inversion, so that a seed gives the same schedule with every standard library.
double Arrivals::Gap(double per_second) {
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1)
  return -std::log1p(-uniform) / per_second;
}

std::optional<std::chrono::nanoseconds> Arrivals::NextOfAll() {
  while (phase_ < plan_.phases.size()) {
    const ArrivalPlan::Phase& phase = plan_.phases[phase_];
    if (plan_.spacing == ArrivalPlan::Spacing::kEven) {
      // A product, not a sum of gaps: no error adds up.
      in_phase_s_ = static_cast<double>(even_in_phase_++) / phase.per_second;
    } else {
      in_phase_s_ += Gap(phase.per_second);
    }
    if (in_phase_s_ < Seconds(phase.duration)) {
      return std::chrono::nanoseconds(static_cast<int64_t>((phase_start_s_ + in_phase_s_) * 1e9));
    }
    // Exponential gaps have no memory, so a phase may begin with a fresh one.
    phase_start_s_ += Seconds(phase.duration);
    in_phase_s_ = 0;
    even_in_phase_ = 0;
    ++phase_;
  }
  return std::nullopt;
}

}  // namespace bouquet::bench
