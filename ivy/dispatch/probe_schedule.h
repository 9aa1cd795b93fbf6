#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace bouquet::ivy {

/// When a replica is asked next how it is doing: at a steady pace while it answers, and with
/// growing gaps, from `first_retry` doubling to `longest_retry`, while it does not. Pure.
class ProbeSchedule {
 public:
  struct Options {
    std::chrono::milliseconds interval{1000};
    std::chrono::milliseconds first_retry{100};
    std::chrono::milliseconds longest_retry{5000};
  };

  explicit ProbeSchedule(const Options& options) : options_(options) {}

  std::chrono::milliseconds AfterAnswer() {
    failures_ = 0;
    return options_.interval;
  }

  /// `jitter` in [0, 1): spreads the gateways that lost the same replica over a quarter of the gap.
  std::chrono::milliseconds AfterFailure(double jitter) {
    constexpr int kMostDoublings = 20;
    const auto doubled = options_.first_retry * (int64_t{1} << std::min(failures_, kMostDoublings));
    ++failures_;
    const auto gap = std::min<std::chrono::milliseconds>(doubled, options_.longest_retry);
    return gap - std::chrono::milliseconds(
                     static_cast<int64_t>(static_cast<double>(gap.count()) * jitter / 4));
  }

 private:
  const Options options_;
  int failures_ = 0;
};

}  // namespace bouquet::ivy
