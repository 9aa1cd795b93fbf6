#include "rose/step_grid.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace bouquet::rose {
namespace {

constexpr int32_t kSmallestTokens = 16;
constexpr int32_t kFineStep = 64;
constexpr int32_t kFineUpTo = 1024;
constexpr int32_t kCoarseStep = 256;
constexpr int32_t kSmallestLongest = 16;

int32_t RoundUp(int32_t value, int32_t step) { return (value + step - 1) / step * step; }

int32_t PowerOfTwo(int32_t value) {
  return static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(value)));
}

int32_t PadTokens(int32_t tokens) {
  if (tokens <= 2 * kSmallestTokens) {
    return tokens <= kSmallestTokens ? kSmallestTokens : 2 * kSmallestTokens;
  }
  return RoundUp(tokens, tokens <= kFineUpTo ? kFineStep : kCoarseStep);
}

}  // namespace

StepSizes PadStep(const StepSizes& sizes) {
  CHECK_GE(sizes.num_tokens, 1);
  CHECK_GE(sizes.num_sequences, 1);
  CHECK_GE(sizes.num_rows, sizes.num_sequences);
  CHECK_GE(sizes.longest_sequence, 1);
  StepSizes padded = sizes;
  padded.num_tokens = PadTokens(sizes.num_tokens);
  padded.num_sequences = PowerOfTwo(sizes.num_sequences);
  padded.num_rows = PowerOfTwo(sizes.num_rows);
  padded.longest_sequence =
      std::min(PowerOfTwo(std::max(sizes.longest_sequence, kSmallestLongest)), padded.num_tokens);
  return padded;
}

std::vector<int64_t> PaddedTokenCounts(int32_t max_tokens) {
  std::vector<int64_t> counts;
  for (int32_t tokens = 1; counts.empty() || counts.back() < max_tokens;) {
    tokens = PadTokens(tokens);
    counts.push_back(tokens++);
  }
  return counts;
}

std::vector<StepSizes> StartupGrid(int32_t max_tokens, int32_t max_sequences, int32_t max_length) {
  max_tokens = std::min(max_tokens, kMostGraphTokens);
  std::vector<StepSizes> grid;
  for (const int64_t count : PaddedTokenCounts(max_tokens)) {
    const auto tokens = static_cast<int32_t>(count);
    if (tokens <= max_tokens && tokens <= max_length) {
      grid.push_back(
          {.num_tokens = tokens, .num_sequences = 1, .num_rows = 1, .longest_sequence = tokens});
    }
  }
  for (int32_t sequences = 2; sequences <= max_sequences; sequences *= 2) {
    for (int32_t length = kSmallestLongest; length <= max_length; length *= 2) {
      if (int64_t{sequences} * length <= max_tokens) {
        grid.push_back({.num_tokens = sequences * length,
                        .num_sequences = sequences,
                        .num_rows = sequences,
                        .longest_sequence = length});
      }
    }
  }
  return grid;
}

}  // namespace bouquet::rose
