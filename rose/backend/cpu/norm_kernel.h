#pragma once

#include "rose/backend/cpu/kernels.h"
#include "rose/backend/cpu/lanes.h"

// Norms over rows that stay in the first-level cache: one pass makes the float32 row in `scratch`
// [width] and its sum, one the variance, one the output.

namespace bouquet::rose::cpu {

template <class V, class T>
struct NormKernel {
  using Float = typename V::Float;
  static constexpr int64_t kWidth = V::kWidth;

  /// Normalises the float32 row in `scratch`, whose (LayerNorm) sum or (RMSNorm) sum of squares is
  /// `total`, into out.
  BOUQUET_INLINE void Finish(const NormArgs& args, const float* scratch, float total, T* out) {
    const float width = static_cast<float>(args.width);
    float mean = 0;
    float variance = total / width;
    if (args.kind == NormKind::kLayerNorm) {
      mean = total / width;
      Float squares = V::Broadcast(0);
      for (int64_t i = 0; i < args.width; i += kWidth) {
        const Float centred = V::LoadFirst(scratch + i, args.width - i) - mean;
        squares += V::KeepFirst(centred * centred, args.width - i, 0);
      }
      variance = V::Sum(squares) / width;
    }
    const float scale = 1.0F / __builtin_sqrtf(variance + args.epsilon);
    for (int64_t i = 0; i < args.width; i += kWidth) {
      const int64_t left = args.width - i;
      Float y =
          (V::LoadFirst(scratch + i, left) - mean) * scale * V::LoadFirst(args.gain + i, left);
      if (args.bias != nullptr) {
        y += V::LoadFirst(args.bias + i, left);
      }
      V::StoreFirst(out + i, y, left);
    }
  }

  static void Rows(const NormArgs& args, int64_t row_begin, int64_t row_end, float* scratch) {
    for (int64_t row = row_begin; row < row_end; ++row) {
      const T* x = static_cast<const T*>(args.x) + row * args.x_stride;
      const T* residual = args.residual == nullptr
                              ? nullptr
                              : static_cast<const T*>(args.residual) + row * args.residual_stride;
      T* sum = args.sum == nullptr ? nullptr : static_cast<T*>(args.sum) + row * args.sum_stride;
      Float total = V::Broadcast(0);
      for (int64_t i = 0; i < args.width; i += kWidth) {
        const int64_t left = args.width - i;
        Float value = V::LoadFirst(x + i, left);
        if (residual != nullptr) {
          value += V::LoadFirst(residual + i, left);
        }
        if (sum != nullptr) {
          V::StoreFirst(sum + i, value, left);
        }
        V::StoreFirst(scratch + i, value, left);
        total += args.kind == NormKind::kRmsNorm ? value * value : value;
      }
      Finish(args, scratch, V::Sum(total), static_cast<T*>(args.out) + row * args.out_stride);
    }
  }
};

template <class V, class T>
struct EmbeddingKernel {
  using Float = typename V::Float;

  static void Rows(const EmbedArgs& args, int64_t token_begin, int64_t token_end, float* scratch) {
    const NormArgs& norm = args.norm;
    for (int64_t token = token_begin; token < token_end; ++token) {
      const T* word = static_cast<const T*>(args.word) + args.token_ids[token] * args.word_stride;
      const T* position = nullptr;
      if (args.position != nullptr) {
        const int64_t index = args.positions[token] + int64_t{args.position_offset};
        position = static_cast<const T*>(args.position) + index * args.position_stride;
      }
      const T* type = nullptr;
      if (args.token_type != nullptr) {
        const int64_t index = args.token_type_ids == nullptr ? 0 : args.token_type_ids[token];
        type = static_cast<const T*>(args.token_type) + index * args.token_type_stride;
      }
      T* out = static_cast<T*>(norm.out) + token * norm.out_stride;
      Float total = V::Broadcast(0);
      for (int64_t i = 0; i < norm.width; i += V::kWidth) {
        const int64_t left = norm.width - i;
        Float value = V::LoadFirst(word + i, left);
        if (position != nullptr) {
          value += V::LoadFirst(position + i, left);
        }
        if (type != nullptr) {
          value += V::LoadFirst(type + i, left);
        }
        if (norm.kind == NormKind::kNone) {
          V::StoreFirst(out + i, value, left);
        } else {
          V::StoreFirst(scratch + i, value, left);
          total += norm.kind == NormKind::kRmsNorm ? value * value : value;
        }
      }
      if (norm.kind != NormKind::kNone) {
        NormKernel<V, T>::Finish(norm, scratch, V::Sum(total), out);
      }
    }
  }
};

}  // namespace bouquet::rose::cpu
