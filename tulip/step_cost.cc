#include "tulip/step_cost.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace bouquet::tulip {

StepCost::StepCost(std::span<const Point> measured) {
  for (const Point& point : measured) {
    Observe(point.tokens, point.step_us);
  }
}

void StepCost::Observe(int32_t tokens, double step_us) {
  CHECK_LT(0, tokens);
  const int32_t index = std::bit_width(static_cast<uint32_t>(tokens)) - 1;
  Bucket& bucket = buckets_[static_cast<size_t>(index)];
  if (bucket.mean_tokens == 0) {
    bucket = {static_cast<double>(tokens), std::max(step_us, 1.0)};
    return;
  }
  bucket.mean_tokens += kWeightOfNew * (tokens - bucket.mean_tokens);
  bucket.mean_us += kWeightOfNew * (std::max(step_us, 1.0) - bucket.mean_us);
}

double StepCost::StepUs(int32_t tokens) const {
  const Bucket* below = nullptr;
  for (const Bucket& bucket : buckets_) {
    if (bucket.mean_tokens == 0) {
      continue;
    }
    if (bucket.mean_tokens >= tokens) {
      if (below == nullptr) {
        return bucket.mean_us;
      }
      const double share =
          (tokens - below->mean_tokens) / (bucket.mean_tokens - below->mean_tokens);
      return below->mean_us + share * (bucket.mean_us - below->mean_us);
    }
    below = &bucket;
  }
  return below == nullptr ? kUnknownTokenUs * tokens : below->mean_us * tokens / below->mean_tokens;
}

double StepCost::TokensPerSecond(int32_t step_tokens) const {
  return 1e6 * step_tokens / StepUs(step_tokens);
}

int32_t StepCost::DefaultStepTokens(int32_t max_step_tokens) const {
  double best = 0;
  for (const Bucket& bucket : buckets_) {
    best = bucket.mean_tokens == 0 ? best : std::max(best, bucket.mean_tokens / bucket.mean_us);
  }
  int32_t chosen = kMinDefaultStepTokens;
  for (const Bucket& bucket : buckets_) {
    if (bucket.mean_tokens != 0 && bucket.mean_tokens / bucket.mean_us >= 0.97 * best) {
      chosen = std::max(chosen, static_cast<int32_t>(bucket.mean_tokens));
      break;
    }
  }
  return std::min(chosen, max_step_tokens);
}

}  // namespace bouquet::tulip
