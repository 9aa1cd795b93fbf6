#pragma once

#include "rose/backend/cpu/attention_block.h"
#include "rose/backend/cpu/gemm_kernel.h"
#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/lane_math.h"
#include "rose/backend/cpu/lanes.h"

// Attention of a run of queries of one sequence and one kv head's group, block by block over the
// keys: (1) keys are transposed and values copied into float32 scratch, (2) per tile of queries the
// scores are a small matrix product, (3) softmax row by row, with the running maximum and sum that
// let key blocks be added up, (4) weights times values is a second product. All sums are float32
// whatever the dtype. Sequences of up to kKeyBlock tokens have one block, which the caller may keep
// over several runs of queries.

namespace bouquet::rose::cpu {

template <class V, class T>
struct AttentionKernel {
  using Float = typename V::Float;
  static constexpr int kColumns = Tile<V>::kColumns;
  static constexpr int kMaxRows = Tile<V>::kMaxRows;
  static constexpr float kLog2E = 1.44269504F;

  /// Keys that some query of rows begin .. end may see: [first, last).
  struct KeyRange {
    int32_t first = 0;
    int32_t last = 0;
  };

  BOUQUET_INLINE KeyRange VisibleTo(const AttentionArgs& args, int32_t begin, int32_t end) {
    KeyRange range{0, args.length};
    if (args.window > 0) {
      range.first = begin > args.window ? begin - args.window : 0;
      const int64_t last = int64_t{end} + args.window;
      range.last = last < args.length ? static_cast<int32_t>(last) : args.length;
    }
    if (args.causal && end < range.last) {
      range.last = end;
    }
    return range;
  }

  /// Keys [head_dim][kKeyStride] transposed, zeros up to a whole tile; values [count][padded].
  static void PackBlock(const AttentionArgs& args, int32_t block_begin, int32_t block_end) {
    const int64_t dim = args.head_dim;
    const int64_t padded = PaddedHeadDim(dim);
    const T* first = static_cast<const T*>(args.qkv) + block_begin * args.qkv_stride;
    const T* keys = first + (args.num_heads + int64_t{args.kv_head}) * dim;
    const T* values = keys + args.num_kv_heads * dim;
    const int64_t count = block_end - block_begin;
    for (int64_t j = 0; j < count; j += V::kWidth) {
      const int64_t lanes = count - j < V::kWidth ? count - j : V::kWidth;
      for (int64_t d = 0; d < dim; d += V::kWidth) {
        const int64_t columns = dim - d < V::kWidth ? dim - d : V::kWidth;
        const T* first_key = keys + j * args.qkv_stride + d;
        Float block[V::kWidth];
#pragma GCC unroll 16
        for (int64_t i = 0; i < V::kWidth; ++i) {
          block[i] =
              i < lanes ? V::LoadFirst(first_key + i * args.qkv_stride, columns) : V::Broadcast(0);
        }
        V::Transpose(block);
        for (int64_t i = 0; i < columns; ++i) {
          V::Store(args.scratch.keys + (d + i) * kKeyStride + j, block[i]);
        }
      }
    }
    const int64_t whole = (count + kColumns - 1) / kColumns * kColumns;
    const int64_t written = (count + V::kWidth - 1) / V::kWidth * V::kWidth;
    if (written < whole) {
      for (int64_t d = 0; d < dim; ++d) {
        V::Store(args.scratch.keys + d * kKeyStride + written, V::Broadcast(0));
      }
    }
    for (int64_t j = 0; j < count; ++j) {
      float* row = args.scratch.values + j * padded;
      const T* value = values + j * args.qkv_stride;
      for (int64_t d = 0; d < padded; d += V::kWidth) {
        V::Store(row + d, d < dim ? V::LoadFirst(value + d, dim - d) : V::Broadcast(0));
      }
    }
  }

  /// What distance adds to one row of scores.
  struct RowBias {
    const float* at_zero = nullptr;  // of the head, at distance 0; null: nothing is added
    int32_t max_distance = 0;
    int32_t distance = 0;  // of the row's first score

    /// For scores j .. j + kWidth. Beyond the last distance a whole vector lies in the table's
    /// margin, so that only its start is clamped.
    BOUQUET_INLINE Float Load(const RowBias& bias, int32_t j) {
      static_assert(V::kWidth <= RelativeBias::kMargin);
      const int32_t least = -bias.max_distance - V::kWidth;
      const int32_t wanted = bias.distance + j;
      const int32_t capped = wanted < bias.max_distance ? wanted : bias.max_distance;
      return V::Load(bias.at_zero + (capped > least ? capped : least));
    }
  };

  /// The largest of the first `whole` scores of a row, after the bias has been added to them.
  BOUQUET_INLINE float LargestBiased(float* scores, int32_t whole, const RowBias& bias) {
    Float largest = V::Broadcast(-__builtin_inff());
    if (bias.at_zero == nullptr) {
      for (int32_t j = 0; j < whole; j += V::kWidth) {
        largest = V::Max(V::Load(scores + j), largest);
      }
    } else {
      for (int32_t j = 0; j < whole; j += V::kWidth) {
        const Float score = V::Load(scores + j) + RowBias::Load(bias, j) * kLog2E;
        V::Store(scores + j, score);
        largest = V::Max(score, largest);
      }
    }
    return V::Largest(largest);
  }

  /// Softmax numerators of one row of scores in place: `scores` covers keys base .. base + count
  /// and only visible ones count. Updates the row's running maximum and sum; returns the factor for
  /// what was summed before.
  BOUQUET_INLINE float SoftmaxRow(float* scores, int32_t base, int32_t count, KeyRange visible,
                                  const RowBias& bias, float* maximum, float* weight) {
    const int32_t begin = visible.first > base ? visible.first - base : 0;
    const int32_t end = visible.last - base < count ? visible.last - base : count;
    if (begin >= end) {
      for (int32_t j = 0; j < count; ++j) {
        scores[j] = 0;
      }
      return 1.0F;
    }
    const float masked = -__builtin_inff();
    for (int32_t j = 0; j < begin; ++j) {
      scores[j] = masked;
    }
    const int32_t whole = (count + V::kWidth - 1) / V::kWidth * V::kWidth;
    for (int32_t j = end; j < whole; ++j) {
      scores[j] = masked;
    }
    const float row_largest = LargestBiased(scores, whole, bias);
    const float old_maximum = *maximum;
    const float new_maximum = row_largest > old_maximum ? row_largest : old_maximum;
    Float total = V::Broadcast(0);
    for (int32_t j = 0; j < whole; j += V::kWidth) {
      const Float p = Exp2NotPositive<V>(V::Load(scores + j) - new_maximum);
      V::Store(scores + j, p);
      total += p;
    }
    const float factor = __builtin_exp2f(old_maximum - new_maximum);
    *maximum = new_maximum;
    *weight = *weight * factor + V::Sum(total);
    return factor;
  }

  /// One tile of query rows against keys of the block that starts at `block_begin`.
  /// `state` is the first of the tile's rows in sums, maxima and weights.
  static void TileAgainstBlock(const AttentionArgs& args, int32_t head, int32_t row, int32_t rows,
                               int32_t block_begin, KeyRange keys, int64_t state) {
    const int64_t dim = args.head_dim;
    const int64_t padded = PaddedHeadDim(dim);
    const AttentionScratch& scratch = args.scratch;
    const float scale = args.scale * kLog2E;
    const T* queries = static_cast<const T*>(args.qkv) + row * args.qkv_stride + head * dim;
    for (int32_t r = 0; r < rows; ++r) {
      const T* query = queries + r * args.qkv_stride;
      if (row + r + kMaxRows < args.query_end) {  // the next tile's, which come from far away
        V::Prefetch(query + kMaxRows * args.qkv_stride, dim);
      }
      for (int64_t d = 0; d < dim; d += V::kWidth) {
        const Float scaled = V::LoadFirst(query + d, dim - d) * scale;
        V::StoreFirst(scratch.queries + r * dim + d, scaled, dim - d);
      }
    }
    const int32_t base = (keys.first - block_begin) / kColumns * kColumns + block_begin;
    const int32_t count = keys.last - base;
    for (int32_t j = 0; j < count; j += kColumns) {
      Tile<V>::template MultiplyUpTo<false>(rows, scratch.queries, dim,
                                            scratch.keys + (base - block_begin) + j, kKeyStride,
                                            dim, scratch.scores + j, kKeyStride);
    }
    RowBias bias{args.relative_bias, args.max_distance, 0};
    if (bias.at_zero != nullptr) {
      bias.at_zero += head * args.relative_bias_stride;
    }
    float factors[kMaxRows];
    for (int32_t r = 0; r < rows; ++r) {
      bias.distance = base - (row + r);
      factors[r] = SoftmaxRow(scratch.scores + r * kKeyStride, base, count,
                              VisibleTo(args, row + r, row + r + 1), bias,
                              scratch.maxima + state + r, scratch.weights + state + r);
    }
    alignas(64) float tile[kMaxRows * kColumns];
    for (int64_t column = 0; column < padded; column += kColumns) {
      Tile<V>::template MultiplyUpTo<false>(rows, scratch.scores, kKeyStride,
                                            scratch.values + (base - block_begin) * padded + column,
                                            padded, count, tile, kColumns);
      for (int32_t r = 0; r < rows; ++r) {
        float* sums = scratch.sums + (state + r) * padded + column;
        V::Store(sums, V::Load(sums) * factors[r] + V::Load(tile + r * kColumns));
        V::Store(sums + V::kWidth,
                 V::Load(sums + V::kWidth) * factors[r] + V::Load(tile + r * kColumns + V::kWidth));
      }
    }
  }

  BOUQUET_INLINE int64_t PaddedHeadDim(int64_t dim) {
    return (dim + kHeadDimMultiple - 1) / kHeadDimMultiple * kHeadDimMultiple;
  }

  static void Queries(const AttentionArgs& args) {
    const int32_t group = args.num_heads / args.num_kv_heads;
    const int32_t query_count = args.query_end - args.query_begin;
    const int64_t states = int64_t{group} * query_count;
    const int64_t padded = PaddedHeadDim(args.head_dim);
    for (int64_t i = 0; i < states; ++i) {
      args.scratch.maxima[i] = -__builtin_inff();
      args.scratch.weights[i] = 0;
    }
    __builtin_memset(args.scratch.sums, 0, sizeof(float) * states * padded);

    KeyRange keys = VisibleTo(args, args.query_begin, args.query_end);
    if (args.length <= kKeyBlock) {
      keys = {0, args.length};  // one block, the same for every run of queries
    }
    for (int32_t block = keys.first; block < keys.last; block += kKeyBlock) {
      const int32_t block_end = block + kKeyBlock < keys.last ? block + kKeyBlock : keys.last;
      if (!args.keys_are_packed) {
        PackBlock(args, block, block_end);
      }
      for (int32_t member = 0; member < group; ++member) {
        for (int32_t row = args.query_begin; row < args.query_end; row += kMaxRows) {
          const int32_t rows = args.query_end - row < kMaxRows ? args.query_end - row : kMaxRows;
          KeyRange visible = VisibleTo(args, row, row + rows);
          visible.first = visible.first > block ? visible.first : block;
          visible.last = visible.last < block_end ? visible.last : block_end;
          if (visible.first < visible.last) {
            TileAgainstBlock(args, args.kv_head * group + member, row, rows, block, visible,
                             int64_t{member} * query_count + row - args.query_begin);
          }
        }
      }
    }
    Divide(args, group, query_count, padded);
  }

  BOUQUET_INLINE void Divide(const AttentionArgs& args, int32_t group, int32_t query_count,
                             int64_t padded) {
    const int64_t dim = args.head_dim;
    for (int32_t member = 0; member < group; ++member) {
      for (int32_t r = 0; r < query_count; ++r) {
        const int64_t state = int64_t{member} * query_count + r;
        const float inverse = 1.0F / args.scratch.weights[state];
        T* out = static_cast<T*>(args.out) + (args.query_begin + r) * args.out_stride +
                 (args.kv_head * group + member) * dim;
        for (int64_t d = 0; d < dim; d += V::kWidth) {
          V::StoreFirst(out + d, V::Load(args.scratch.sums + state * padded + d) * inverse,
                        dim - d);
        }
      }
    }
  }
};

/// RMSNorm per head and rotary embedding, in place.
template <class V, class T>
struct RotateKernel {
  using Float = typename V::Float;

  BOUQUET_INLINE void NormHead(T* head, int64_t dim, const float* gain, float epsilon) {
    Float squares = V::Broadcast(0);
    for (int64_t d = 0; d < dim; d += V::kWidth) {
      const Float x = V::LoadFirst(head + d, dim - d);
      squares += x * x;
    }
    const float scale = 1.0F / __builtin_sqrtf(V::Sum(squares) / static_cast<float>(dim) + epsilon);
    for (int64_t d = 0; d < dim; d += V::kWidth) {
      const Float y = V::LoadFirst(head + d, dim - d) * scale * V::LoadFirst(gain + d, dim - d);
      V::StoreFirst(head + d, y, dim - d);
    }
  }

  BOUQUET_INLINE void RotateHead(T* head, int64_t half, const float* cosine, const float* sine) {
    for (int64_t d = 0; d < half; d += V::kWidth) {
      const int64_t left = half - d;
      const Float first = V::LoadFirst(head + d, left);
      const Float second = V::LoadFirst(head + half + d, left);
      const Float c = V::LoadFirst(cosine + d, left);
      const Float s = V::LoadFirst(sine + d, left);
      V::StoreFirst(head + d, first * c - second * s, left);
      V::StoreFirst(head + half + d, second * c + first * s, left);
    }
  }

  static void Tokens(const RotateArgs& args, int64_t token_begin, int64_t token_end) {
    const int64_t dim = args.head_dim;
    const int64_t half = dim / 2;
    for (int64_t token = token_begin; token < token_end; ++token) {
      T* row = static_cast<T*>(args.qkv) + token * args.qkv_stride;
      for (int64_t head = 0; head < args.num_heads + args.num_kv_heads; ++head) {
        const bool is_query = head < args.num_heads;
        const float* gain = is_query ? args.query_gain : args.key_gain;
        if (gain != nullptr) {
          NormHead(row + head * dim, dim, gain, is_query ? args.query_epsilon : args.key_epsilon);
        }
        if (args.cosines != nullptr) {
          const int64_t position = args.positions[token];
          RotateHead(row + head * dim, half, args.cosines + position * half,
                     args.sines + position * half);
        }
      }
    }
  }
};

}  // namespace bouquet::rose::cpu
