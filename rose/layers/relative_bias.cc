#include "rose/layers/relative_bias.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "rose/tensor/convert.h"

namespace bouquet::rose {

int32_t DistanceBucket(int32_t distance) {
  constexpr int32_t kPerSide = kDistanceBuckets / 2;
  constexpr int32_t kExact = kPerSide / 2;
  // 8 + ⌊8 · log(n / 8) / log(128 / 8)⌋ is the number of k ≥ 1 with n ≥ 8 · 2^(k/2), so that
  // whole numbers decide: n² ≥ 64 · 2^k.
  const int64_t n = std::abs(int64_t{distance});
  int32_t bucket = static_cast<int32_t>(std::min<int64_t>(n, kExact));
  int64_t square = int64_t{2} * kExact * kExact;
  while (bucket >= kExact && bucket < kPerSide - 1 && n * n >= square) {
    ++bucket;
    square *= 2;
  }
  return bucket + (distance > 0 ? kPerSide : 0);
}

Result<Tensor> ExpandRelativeBias(const HostTensor& buckets, Backend& backend) {
  CHECK_EQ(buckets.rows, kDistanceBuckets);
  const int64_t heads = buckets.cols;
  std::vector<float> values(static_cast<size_t>(buckets.rows * heads));
  ConvertElements(buckets.data, buckets.dtype, values.data(), Dtype::kFloat32,
                  buckets.rows * heads);
  constexpr int32_t kEnd = kFarthestBucketDistance + RelativeBias::kMargin;
  std::vector<float> table;  // [heads, 2 · kEnd + 1]
  for (int64_t head = 0; head < heads; ++head) {
    for (int32_t distance = -kEnd; distance <= kEnd; ++distance) {
      table.push_back(values[static_cast<size_t>(DistanceBucket(distance) * heads + head)]);
    }
  }
  ASSIGN_OR_RETURN(Tensor tensor, backend.Allocate(Dtype::kFloat32, heads, 2 * kEnd + 1));
  RETURN_IF_ERROR(backend.CopyIn(table.data(), tensor.view()));
  return tensor;
}

}  // namespace bouquet::rose
