#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "rose/backend/cuda/attention/attention_args.h"
#include "rose/backend/cuda/attention/attention_shape.h"

// What the tests and the benchmark of attention share: device memory, batches of sequences with
// random rows, and the reference in double precision.

namespace bouquet::rose::cuda {

#define ASSERT_CUDA(expression) \
  ASSERT_EQ(expression, cudaSuccess) << cudaGetErrorString(cudaGetLastError())

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, std::max<size_t>(count * sizeof(T), 1)) == cudaSuccess) {
      data_ = static_cast<T*>(memory);
    }
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { Write(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  void Write(const std::vector<T>& values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
    // A copy from pageable memory may still be under way, and other streams do not wait for it.
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

/// bfloat16 as its bits, so that "equal" means bit for bit and NaN can be looked for.
using Bits = uint16_t;
inline float ToFloat(Bits bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
inline Bits ToBits(float value) {
  const __nv_bfloat16 rounded = __float2bfloat16(value);
  Bits bits = 0;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}
constexpr Bits kNanBits = 0x7FFF;

/// Sequences one after another, padded to sizes that may be larger.
struct AttentionBatch {
  std::vector<int32_t> lengths;
  AttentionSizes padded;

  static AttentionBatch Of(std::vector<int32_t> lengths) {
    AttentionBatch batch{std::move(lengths), {}};
    batch.padded = {static_cast<int32_t>(batch.lengths.size()), batch.num_tokens(),
                    *std::max_element(batch.lengths.begin(), batch.lengths.end())};
    return batch;
  }
  int32_t num_tokens() const { return std::accumulate(lengths.begin(), lengths.end(), 0); }
  std::vector<int32_t> offsets() const {
    std::vector<int32_t> offsets(static_cast<size_t>(padded.num_sequences) + 1, num_tokens());
    int32_t offset = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      offsets[i] = offset;
      offset += lengths[i];
    }
    return offsets;
  }
};

inline int64_t RowWidth(const AttentionShape& shape) {
  return static_cast<int64_t>(shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
}

/// Rows of q, k, v side by side: about N(0, 1) for the tokens of `batch`, `padding` after them.
inline std::vector<Bits> RandomRows(const AttentionShape& shape, const AttentionBatch& batch,
                                    Bits padding, unsigned seed) {
  const auto width = static_cast<size_t>(RowWidth(shape));
  std::vector<Bits> rows(static_cast<size_t>(batch.padded.num_tokens) * width, padding);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const size_t count = static_cast<size_t>(batch.num_tokens()) * width;
  for (size_t i = 0; i < count; ++i) {
    rows[i] = ToBits(normal(random));
  }
  return rows;
}

/// What the tests and the benchmark add by distance: random numbers about N(0, 2), the same every
/// time. The last distance is no multiple of a tile.
constexpr int32_t kMaxTestDistance = 91;
constexpr int32_t kTestDistances = 2 * kMaxTestDistance + 1;
inline std::vector<float> DistanceBiases(const AttentionShape& shape) {  // [num_heads, distances]
  std::vector<float> biases(static_cast<size_t>(shape.num_heads * kTestDistances));
  std::mt19937 random(20261130);
  std::normal_distribution<float> normal(0, 2);
  std::generate(biases.begin(), biases.end(), [&] { return normal(random); });
  return biases;
}

/// `biases` are DistanceBiases in device memory, for a shape with a relative bias.
inline AttentionArgs MakeArgs(const AttentionShape& shape, Bits* rows, Bits* out,
                              const int32_t* offsets, const float* biases) {
  auto* first = reinterpret_cast<__nv_bfloat16*>(rows);
  const int64_t head_dim = shape.head_dim;
  return {.q = first,
          .k = first + shape.num_heads * head_dim,
          .v = first + (shape.num_heads + shape.num_kv_heads) * head_dim,
          .row_stride = RowWidth(shape),
          .out = reinterpret_cast<__nv_bfloat16*>(out),
          .sequence_offsets = offsets,
          .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim)),
          .relative_bias = shape.relative_bias ? biases + kMaxTestDistance : nullptr,
          .relative_bias_stride = kTestDistances,
          .max_distance = kMaxTestDistance};
}

/// softmax(scale · q·kᵀ) · v in double precision, and Σ weight · |v|, to which the rounding of the
/// weights to bfloat16 is proportional. Both [num_tokens, num_heads · head_dim].
struct ReferenceAttention {
  std::vector<double> out;
  std::vector<double> magnitude;
};

/// Eight sums side by side: a single one would wait for each addition.
inline double Dot(const float* a, const float* b, int64_t count) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t lane = 0; lane < 8; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (; i < count; ++i) {
    sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

/// The rows first_row ≤ i < end_row of one head of the sequence that starts at token `first`.
inline void AttendInDouble(const AttentionShape& shape, const std::vector<float>& rows,
                           int64_t first, int64_t length, int64_t head, int64_t first_row,
                           int64_t end_row, ReferenceAttention& reference) {
  const int64_t dim = shape.head_dim;
  const int64_t width = RowWidth(shape);
  const int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  const double scale = 1.0F / std::sqrt(static_cast<float>(dim));
  const std::vector<float> biases = DistanceBiases(shape);
  std::vector<double> weights(static_cast<size_t>(length));
  for (int64_t i = first_row; i < end_row; ++i) {
    const int64_t window = shape.window > 0 ? shape.window : length;
    const int64_t begin = std::max<int64_t>(0, i - window);
    const int64_t end =
        shape.mask == AttentionMask::kCausal ? i + 1 : std::min(length, i + window + 1);
    const float* q = &rows[static_cast<size_t>((first + i) * width + head * dim)];
    double maximum = -INFINITY;
    for (int64_t j = begin; j < end; ++j) {
      const float* k =
          &rows[static_cast<size_t>((first + j) * width + (shape.num_heads + kv_head) * dim)];
      const double score = scale * Dot(q, k, dim);
      weights[static_cast<size_t>(j)] = score;
      maximum = std::max(maximum, score);
    }
    if (shape.relative_bias) {
      const float* at_zero = &biases[static_cast<size_t>(head * kTestDistances + kMaxTestDistance)];
      maximum = -INFINITY;
      for (int64_t j = begin; j < end; ++j) {
        double& weight = weights[static_cast<size_t>(j)];
        weight += at_zero[std::clamp<int64_t>(j - i, -kMaxTestDistance, kMaxTestDistance)];
        maximum = std::max(maximum, weight);
      }
    }
    const size_t row = static_cast<size_t>(((first + i) * shape.num_heads + head) * dim);
    double sum = 0;
    for (int64_t j = begin; j < end; ++j) {
      const double weight = std::exp(weights[static_cast<size_t>(j)] - maximum);
      const float* v = &rows[static_cast<size_t>(
          (first + j) * width + (shape.num_heads + shape.num_kv_heads + kv_head) * dim)];
      sum += weight;
      for (int64_t d = 0; d < dim; ++d) {
        reference.out[row + static_cast<size_t>(d)] += weight * static_cast<double>(v[d]);
        reference.magnitude[row + static_cast<size_t>(d)] +=
            weight * std::abs(static_cast<double>(v[d]));
      }
    }
    for (size_t d = 0; d < static_cast<size_t>(dim); ++d) {
      reference.out[row + d] /= sum;
      reference.magnitude[row + d] /= sum;
    }
  }
}

inline ReferenceAttention Reference(const AttentionShape& shape, const AttentionBatch& batch,
                                    const std::vector<Bits>& bits) {
  std::vector<float> rows(bits.size());
  std::transform(bits.begin(), bits.end(), rows.begin(), ToFloat);
  const size_t size = static_cast<size_t>(batch.num_tokens()) *
                      static_cast<size_t>(shape.num_heads * shape.head_dim);
  ReferenceAttention reference{std::vector<double>(size), std::vector<double>(size)};
  const std::vector<int32_t> offsets = batch.offsets();
  // Blocks of rows are dealt out to threads; each writes rows of its own.
  constexpr int64_t kBlockRows = 32;
  struct Block {
    size_t sequence;
    int64_t head, first_row;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < batch.lengths.size(); ++i) {
    for (int64_t head = 0; head < shape.num_heads; ++head) {
      for (int64_t row = 0; row < batch.lengths[i]; row += kBlockRows) {
        blocks.push_back({i, head, row});
      }
    }
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t taken = next++; taken < blocks.size(); taken = next++) {
      const auto& [i, head, row] = blocks[taken];
      const int64_t length = batch.lengths[i];
      AttendInDouble(shape, rows, offsets[i], length, head, row, std::min(length, row + kBlockRows),
                     reference);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return reference;
}

}  // namespace bouquet::rose::cuda
