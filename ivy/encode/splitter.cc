#include "ivy/encode/splitter.h"

namespace bouquet::ivy {

std::vector<ChunkRange> SplitByTokens(std::span<const int32_t> token_counts, int64_t chunk_tokens) {
  std::vector<ChunkRange> ranges;
  for (size_t i = 0; i < token_counts.size(); ++i) {
    if (ranges.empty() || ranges.back().num_tokens + token_counts[i] > chunk_tokens) {
      ranges.push_back({i, 0, 0});
    }
    ++ranges.back().count;
    ranges.back().num_tokens += token_counts[i];
  }
  return ranges;
}

}  // namespace bouquet::ivy
